//! Containers that runs have left: each bears the process that made it, and is removed by a later run
//! on the same machine when that process is gone.

use std::collections::HashMap;

use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};

const MACHINE: &str = "a2-conformance.machine";
const PROCESS: &str = "a2-conformance.process";
const NAME: &str = "a2-conformance.name";

/// What a container of this process bears.
pub(super) fn labels(name: &str) -> [(&'static str, String); 3] {
    let process = std::process::id().to_string();
    [(MACHINE, machine()), (PROCESS, process), (NAME, name.to_owned())]
}

/// Where process ids mean the same as here: another machine may use the same engine, and so may
/// another container of this one.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| std::env::var("COMPUTERNAME").ok());
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", name.unwrap_or_default().trim(), processes.display())
}

/// Removes containers of processes that are gone. What cannot be removed is left to the next run.
pub(super) async fn leftovers(docker: &Docker) {
    let gone = |process| process != std::process::id() && !is_alive(process);
    remove(docker, format!("{MACHINE}={}", machine()), gone).await;
}

/// Removes the container of this name.
pub(super) async fn named(docker: &Docker, name: &str) {
    remove(docker, format!("{NAME}={name}"), |_| true).await;
}

async fn remove(docker: &Docker, label: String, of: impl Fn(u32) -> bool) {
    let filters = HashMap::from([("label", vec![label])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let Ok(found) = docker.list_containers(Some(options)).await else { return };
    for container in found {
        let labels = container.labels.unwrap_or_default();
        let process = labels.get(PROCESS).and_then(|process| process.parse().ok());
        if let (Some(id), Some(process)) = (container.id, process)
            && of(process)
        {
            let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            let _ = docker.remove_container(&id, Some(options)).await;
        }
    }
}

/// Where it cannot be told, a process counts as alive.
fn is_alive(process: u32) -> bool {
    if cfg!(target_os = "linux") {
        return std::path::Path::new(&format!("/proc/{process}")).exists();
    }
    let ps = std::process::Command::new("ps").args(["-p", &process.to_string()]).output();
    ps.map_or(true, |output| output.status.success())
}
