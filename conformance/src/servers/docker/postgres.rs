//! A Postgres in a container.

use super::Container;
use super::container::{Published, Wanted, start as start_container};
use crate::servers::error::Miss;
use crate::servers::{Setting, source};

const IMAGE: &str = "A2_POSTGRES_IMAGE";
const DEFAULT_IMAGE: &str = "postgres:17-alpine";

/// With the image's own command, unless there are settings.
pub(in super::super) async fn start(settings: &[Setting]) -> Result<Container, Miss> {
    let image = source::variable(IMAGE).map_err(Miss::Failed)?;
    let mut command = Vec::new();
    if !settings.is_empty() {
        // Outside of the container nothing but its port is reached.
        command.extend(["postgres", "-c", "listen_addresses=*"].map(str::to_owned));
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
        command.extend(settings.flat_map(|setting| ["-c".to_owned(), setting]));
    }
    start_container(Wanted {
        image: image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned()),
        ports: Published::Anywhere(5432),
        environment: &[("POSTGRES_HOST_AUTH_METHOD", "trust")],
        command,
    })
    .await
}
