//! Running cargo: the command is printed, its output passes through, a failure is an error.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Cargo itself, in the repository's root.
pub(crate) fn cargo(root: &Path) -> Command {
    // Set by the cargo that runs this; the same toolchain is used all the way down.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Prints the command and runs it to its end.
pub(crate) fn echoed(command: &mut Command) -> Result<()> {
    let line = describe(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("{line}: cannot be started"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// What the command prints on its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command.output().with_context(|| format!("{line}: cannot be started"))?;
    if !output.status.success() {
        bail!("{line}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{line}: printed no UTF-8"))
}

/// Starts the binary that has the stores linked in.
pub(crate) fn lab(root: &Path, command: &str, args: &[String], cargo_args: &[&str]) -> Result<()> {
    let mut run = cargo(root);
    run.args(["run", "--quiet", "--package", "xtask", "--bin", "lab"]).args(cargo_args);
    run.arg("--").arg(command).args(args);
    replaced_by(&mut run)
}

/// Prints the command and becomes it, so that a signal to this process is one to it.
#[cfg(unix)]
fn replaced_by(command: &mut Command) -> Result<()> {
    use std::os::unix::process::CommandExt;

    let line = describe(command);
    eprintln!("$ {line}");
    let error = command.exec();
    Err(error).with_context(|| format!("{line}: cannot be started"))
}

#[cfg(not(unix))]
fn replaced_by(command: &mut Command) -> Result<()> {
    echoed(command)
}

/// What the suite is built with beside the embedded backends, by the backends that it is to run on.
pub(crate) fn suite_features(args: &[String]) -> Option<String> {
    let asked = |backend: &str| {
        let is = |name: &str| name.starts_with(backend);
        args.iter().filter_map(|arg| arg.strip_prefix("--backend=")).any(is)
            || args.windows(2).any(|pair| pair[0] == "--backend" && is(&pair[1]))
    };
    let mut features: Vec<&str> = ["postgres", "redis"].into_iter().filter(|b| asked(b)).collect();
    if features.is_empty() {
        return None;
    }
    features.push(servers_features(args));
    Some(features.join(","))
}

/// What a command that starts servers is built with. Docker's client is the heaviest dependency of
/// all: it is built where Docker is asked for, or may be had.
pub(crate) fn servers_features(args: &[String]) -> &'static str {
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    let is = |policy: &str| {
        let joined = format!("--servers={policy}");
        own.contains(&joined) || own.windows(2).any(|pair| pair == ["--servers", policy])
    };
    let sockets = ["/var/run/docker.sock"].map(Path::new);
    let may_be_had =
        || std::env::var_os("DOCKER_HOST").is_some() || sockets.iter().any(|path| path.exists());
    if is("docker") || (!is("local") && !is("url") && may_be_had()) { "docker" } else { "servers" }
}

/// The command as one would type it.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line =
        program.file_stem().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            line = format!("{}=\"{}\" {line}", key.to_string_lossy(), value.to_string_lossy());
        }
    }
    for arg in command.get_args().map(OsStr::to_string_lossy) {
        line.push(' ');
        line.push_str(&arg);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_described_as_one_would_type_it() {
        let mut command = Command::new("/opt/rust/bin/cargo");
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(describe(&command), r#"RUSTDOCFLAGS="-D warnings" cargo doc --no-deps"#);
    }

    #[test]
    fn docker_is_built_in_where_it_is_asked_for() {
        let features = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
            servers_features(&args)
        };
        assert_eq!(features(&["--check", "--servers", "docker"]), "docker");
        assert_eq!(features(&["--servers=docker"]), "docker");
        assert_eq!(features(&["--servers", "local", "--", "x", "--servers=docker"]), "servers");
        assert_eq!(features(&["--servers=url"]), "servers");
    }

    #[test]
    fn a_backend_is_built_in_where_it_is_asked_for() {
        let features = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
            suite_features(&args)
        };
        assert_eq!(features(&["--filter", "postgres"]), None);
        let local = ["--backend", "postgres", "--servers", "local"];
        assert_eq!(features(&local).as_deref(), Some("postgres,servers"));
        let docker = ["--servers=docker", "--backend=postgres-pgbouncer"];
        assert_eq!(features(&docker).as_deref(), Some("postgres,docker"));
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let mut command = cargo(Path::new("."));
        let error = output(command.arg("no-such-subcommand")).unwrap_err().to_string();
        assert!(error.starts_with("cargo no-such-subcommand: exit"), "{error}");
    }
}
