//! A container: its image had, started, and removed.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use testcontainers::bollard::Docker;
use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::client::docker_client_instance;
use testcontainers::core::{ContainerPort, ImageExt};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage};

use super::sweep;
use crate::servers::error::Miss;
use crate::servers::fresh_name;

/// How long an engine may take to answer at all.
const PING: Duration = Duration::from_secs(5);

/// How long an image may take to be pulled.
const PULL: Duration = Duration::from_secs(300);

/// What to start.
pub(super) struct Wanted {
    pub(super) image: String,
    pub(super) ports: Published,
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Instead of the image's own.
    pub(super) command: Vec<String>,
}

/// Which ports of the container this machine has.
pub(super) enum Published {
    /// This one, at any port.
    Anywhere(u16),
    /// Each at the port of the same number.
    Same(Vec<u16>),
}

/// A container that runs until the value is dropped.
pub(in super::super) struct Container {
    image: String,
    ports: Vec<u16>,
    // None once it is being removed.
    inner: Option<ContainerAsync<GenericImage>>,
    #[cfg(unix)]
    _reaper: Option<crate::servers::reaper::Reaper>,
}

/// Starts a container, after those that earlier runs have left were removed.
pub(super) async fn start(wanted: Wanted) -> Result<Container, Miss> {
    let docker = engine().await?;
    sweep::leftovers(&docker).await;
    let Wanted { image, ports, environment, command } = wanted;
    let (name, tag) = split(&image);
    let own = fresh_name();
    let (container_ports, host_ports) = match &ports {
        Published::Anywhere(port) => (vec![*port], vec![None]),
        Published::Same(ports) => (ports.clone(), ports.iter().copied().map(Some).collect()),
    };
    let mut generic = GenericImage::new(name, tag);
    for port in &container_ports {
        generic = generic.with_exposed_port(ContainerPort::Tcp(*port));
    }
    let bindings = bindings(&container_ports, &host_ports);
    let mut request: ContainerRequest<GenericImage> = generic.into();
    request = request.with_labels(sweep::labels(&own)).with_host_config_modifier(
        move |host: &mut HostConfig| {
            host.publish_all_ports = Some(false);
            host.port_bindings = Some(bindings.clone());
        },
    );
    for (name, value) in environment {
        request = request.with_env_var(*name, *value);
    }
    if !command.is_empty() {
        request = request.with_cmd(command);
    }
    let request = had(&docker, &image, request).await?;
    let failed = |error: &dyn std::fmt::Display| Miss::failed(format!("image {image}: {error}"));
    let started = request.start().await;
    let inner = match started {
        Ok(inner) => inner,
        Err(error) => {
            // One that was made and does not run has no guard yet.
            sweep::named(&docker, &own).await;
            return Err(failed(&error));
        }
    };
    let mut published = Vec::new();
    for port in container_ports {
        let port = inner.get_host_port_ipv4(ContainerPort::Tcp(port)).await;
        published.push(port.map_err(|error| failed(&error))?);
    }
    Ok(Container {
        #[cfg(unix)]
        _reaper: crate::servers::reaper::Reaper::start(REAP, [inner.id()]).ok(),
        image,
        ports: published,
        inner: Some(inner),
    })
}

/// The engine, if one answers.
async fn engine() -> Result<Docker, Miss> {
    let none = |error: String| Miss::NotHad(format!("Docker: no engine answers ({error})"));
    let docker = docker_client_instance().await.map_err(|error| none(error.to_string()))?;
    match tokio::time::timeout(PING, docker.ping()).await {
        Ok(Ok(_)) => Ok(docker),
        Ok(Err(error)) => Err(none(error.to_string())),
        Err(_) => Err(none(format!("not in {} s", PING.as_secs()))),
    }
}

/// The request, once its image is there.
async fn had(
    docker: &Docker,
    image: &str,
    request: ContainerRequest<GenericImage>,
) -> Result<ContainerRequest<GenericImage>, Miss> {
    if docker.inspect_image(image).await.is_ok() {
        return Ok(request);
    }
    let none = |error: String| {
        Miss::NotHad(format!("Docker: the image {image} cannot be had ({})", error.trim_end()))
    };
    match tokio::time::timeout(PULL, request.pull_image()).await {
        Ok(pulled) => pulled.map_err(|error| none(error.to_string())),
        Err(_) => Err(none(format!("not pulled in {} s", PULL.as_secs()))),
    }
}

/// On 127.0.0.1 alone: testcontainers by itself publishes to every network.
fn bindings(container: &[u16], host: &[Option<u16>]) -> HashMap<String, Option<Vec<PortBinding>>> {
    let binding = |port: &Option<u16>| PortBinding {
        host_ip: Some("127.0.0.1".to_owned()),
        host_port: Some(port.map(|port| port.to_string()).unwrap_or_default()),
    };
    let pairs = container.iter().zip(host);
    pairs.map(|(inside, outside)| (format!("{inside}/tcp"), Some(vec![binding(outside)]))).collect()
}

/// Name and tag; a digest stays whole.
fn split(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

impl Container {
    pub(in super::super) fn describe(&self) -> String {
        format!("Docker image {}", self.image)
    }

    /// Of this machine, for the first that was asked for.
    pub(in super::super) fn port(&self) -> u16 {
        self.ports.first().copied().unwrap_or_default()
    }

    /// Of this machine, in the order in which they were asked for.
    pub(in super::super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// That it does not answer, with the end of what it has said.
    pub(in super::super) async fn silent(&self, error: &io::Error) -> Miss {
        let mut said = Vec::new();
        if let Some(inner) = &self.inner {
            said.extend(inner.stdout_to_vec().await.unwrap_or_default());
            said.extend(inner.stderr_to_vec().await.unwrap_or_default());
        }
        let end = String::from_utf8_lossy(&said[said.len().saturating_sub(2_000)..]).into_owned();
        Miss::failed(format!("image {}: no answer ({error}), it said:\n{end}", self.image))
    }
}

/// What the shell does when this process ends without a drop.
#[cfg(unix)]
const REAP: &str = r#"docker rm --force --volumes "$1""#;

/// Removed from a thread of its own: the drop may happen inside a runtime or outside of any.
impl Drop for Container {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(async { drop(inner) }),
                // Its drop needs a runtime; the next run sweeps it up.
                Err(_) => std::mem::forget(inner),
            }
        });
        let _ = removal.join();
    }
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Container");
        debug.field("image", &self.image).field("ports", &self.ports).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_name_and_a_tag() {
        assert_eq!(split("postgres"), ("postgres", "latest"));
        assert_eq!(split("postgres:17-alpine"), ("postgres", "17-alpine"));
        assert_eq!(split("localhost:5000/a/redis"), ("localhost:5000/a/redis", "latest"));
        assert_eq!(split("localhost:5000/redis:7"), ("localhost:5000/redis", "7"));
        assert_eq!(split("redis@sha256:12ab"), ("redis@sha256", "12ab"));
    }

    #[test]
    fn ports_are_bound_to_this_machine_alone() {
        let bound = bindings(&[5432, 7000], &[None, Some(7000)]);
        let of = |port: &str| bound[port].clone().unwrap();
        assert_eq!(of("5432/tcp")[0].host_ip.as_deref(), Some("127.0.0.1"));
        assert_eq!(of("5432/tcp")[0].host_port.as_deref(), Some(""));
        assert_eq!(of("7000/tcp")[0].host_ip.as_deref(), Some("127.0.0.1"));
        assert_eq!(of("7000/tcp")[0].host_port.as_deref(), Some("7000"));
    }
}
