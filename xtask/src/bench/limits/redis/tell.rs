//! A script that appends and publishes.

use std::time::Instant;

use a2_core::async_trait;
use a2_store_redis::fred;
use anyhow::Result;
use fred::clients::{Client, SubscriberClient};
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::Value;
use tokio::sync::mpsc;

use super::{NOW, Script, builder, id};
use crate::bench::limits::Tells;
use crate::bench::payload::{PAYLOAD, TYPE};

/// Appends and publishes.
pub(crate) struct Teller {
    client: Client,
    tell: Script,
    space: String,
    head: u64,
    /// Listens as long as it is there.
    _listener: SubscriberClient,
}

impl Teller {
    /// And when a listener heard of it.
    pub(crate) async fn load(
        url: &str,
        client: Client,
        space: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Instant>)> {
        let listener = builder(url)?.build_subscriber_client()?;
        listener.init().await?;
        let mut messages = listener.message_rx();
        let (seen, sees) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while messages.recv().await.is_ok() && seen.send(Instant::now()).is_ok() {}
        });
        listener.subscribe(format!("{space}:w")).await?;
        let tell = Script::load(&client, include_str!("tell.lua")).await?;
        let space = space.to_owned();
        Ok((Self { client, tell, space, head: 0, _listener: listener }, sees))
    }
}

#[async_trait]
impl Tells for Teller {
    async fn tell(&mut self) -> Result<()> {
        self.head += 1;
        let keys = vec![Value::from(format!("{}:l:0", self.space))];
        let values = vec![
            Value::from(id(self.head)),
            Value::from_static_str(TYPE),
            Value::from(NOW),
            Value::from_static_str(PAYLOAD),
            Value::from(format!("{}:w", self.space)),
        ];
        self.tell.run(&self.client, keys, values).await.map(drop)
    }
}
