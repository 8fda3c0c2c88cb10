//! The layout's name, recorded in every partition: nobody reads or writes keys of another layout.

use a2_core::Result;
use bytes::Bytes;
use fred::error::Error as DriverError;
use fred::types::{Resp3Frame as Frame, Value};
use futures_util::future::try_join_all;
use tokio::time::Instant;

use crate::conn::{To, send};
use crate::error::Place;
use crate::keys::{Keys, LAYOUT, Partition};
use crate::link::Link;

/// Records the layout where it is not recorded; writes nothing where anything else is.
///
/// # Errors
/// `STORE_NOT_CONFIGURED` when the prefix holds another layout, or what the npm package stores.
pub(crate) async fn record(link: &Link, keys: &Keys, until: Instant) -> Result<()> {
    let look = Place::look("connect");
    for key in keys.of_the_earlier() {
        let slot = fred::util::redis_keyslot(&key);
        match send(link, "EXISTS", To::Slot(slot), vec![key.into()], until).await {
            Ok(Frame::Number { data: 0, .. }) => {}
            // Who may not look there cannot have used it.
            Err(error) if error.details().starts_with("NOPERM") => {}
            Err(error) => return Err(look.error(error)),
            Ok(_) => {
                let reason = "holds a store of the earlier A2 (the npm package)";
                return Err(look.refused(format!("the prefix `{}` {reason}", keys.prefix())));
            }
        }
    }
    // All are looked at before the first is written.
    let missing = missing(link, keys.partitions().iter(), until).await?;
    let set = missing.iter().map(|partition| {
        let values = [&partition.schema[..], LAYOUT.as_bytes(), b"NX"];
        let values = values.map(|value| Value::from(Bytes::copy_from_slice(value))).to_vec();
        send(link, "SET", To::Slot(partition.slot), values, until)
    });
    try_join_all(set).await.map_err(|error| Place::change("connect").error(error))?;
    // Somebody else may have been faster.
    self::missing(link, missing.into_iter(), until).await?;
    Ok(())
}

/// The partitions without a layout.
async fn missing<'a>(
    link: &Link,
    partitions: impl Iterator<Item = &'a Partition>,
    until: Instant,
) -> Result<Vec<&'a Partition>> {
    let place = Place::look("connect");
    let get = partitions.map(|partition| async move {
        let key = vec![partition.schema.clone().into()];
        let found = send(link, "GET", To::Slot(partition.slot), key, until).await?;
        Ok::<_, DriverError>((partition, found))
    });
    let found = try_join_all(get).await.map_err(|error| place.error(error))?;
    let mut missing = Vec::new();
    for (partition, found) in found {
        match found {
            Frame::Null => missing.push(partition),
            Frame::BlobString { data, .. } if data == LAYOUT => {}
            _ => {
                let key = String::from_utf8_lossy(&partition.schema);
                return Err(place.refused(format!("`{key}` names another layout than {LAYOUT}")));
            }
        }
    }
    Ok(missing)
}
