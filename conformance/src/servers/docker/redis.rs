//! A Redis or Valkey in a container, or three of them in one.

use super::Container;
use super::container::{Published, Wanted, start as start_container};
use crate::servers::cluster::MASTERS;
use crate::servers::error::Miss;
use crate::servers::port::Ports;
use crate::servers::{Setting, source};

const IMAGE: &str = "A2_REDIS_IMAGE";
const DEFAULT_IMAGE: &str = "redis:7-alpine";

/// The nodes share one network that way, and each is at the same port there and here, so that the
/// addresses that they tell each other and their clients are right for both. Nothing but a shell is
/// asked of the image.
const NODES: &str = r#"
ports=$1
shift
server=$(command -v redis-server || command -v valkey-server) || exit 127
trap 'exit 0' TERM
for port in $ports; do
  "$server" "$@" --port "$port" --protected-mode no --dbfilename "$port.rdb" \
    --appendfilename "$port.aof" --cluster-config-file "$port.conf" &
done
wait
"#;

/// With the image's own command.
pub(in super::super) async fn start() -> Result<Container, Miss> {
    start_container(Wanted {
        image: image()?,
        ports: Published::Anywhere(6379),
        environment: &[],
        command: Vec::new(),
    })
    .await
}

/// Nodes of a cluster that is still to be formed.
pub(in super::super) async fn start_nodes(settings: &[Setting]) -> Result<Container, Miss> {
    let mut ports = Vec::new();
    while ports.len() < MASTERS {
        let port = Ports::WithBus.free().ok_or_else(|| Miss::failed("no port is free"))?;
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    let mut command = ["sh", "-c", NODES, "sh"].map(str::to_owned).to_vec();
    command.push(ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    command.extend(settings.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]));
    start_container(Wanted {
        image: image()?,
        ports: Published::Same(ports),
        environment: &[],
        command,
    })
    .await
}

fn image() -> Result<String, Miss> {
    let named = source::variable(IMAGE).map_err(Miss::Failed)?;
    Ok(named.unwrap_or_else(|| DEFAULT_IMAGE.to_owned()))
}
