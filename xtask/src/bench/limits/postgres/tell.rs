//! An INSERT that notifies who listens.

use std::time::Instant;

use a2_core::async_trait;
use anyhow::Result;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Statement};

use super::{NOW, id};
use crate::bench::limits::Tells;
use crate::bench::payload::{PAYLOAD, TYPE, session_name};

const TELL: &str = "with e as (insert into log values ($1, $2, $3, $4, $5, $6::text::json))
    select pg_notify($7, $8)";

/// A connection that listens on this channel, and when it heard something.
pub(crate) async fn listen(
    url: &str,
    channel: &str,
) -> Result<(Client, mpsc::UnboundedReceiver<Instant>)> {
    let config: Config = url.parse()?;
    let (client, mut connection) = config.connect(NoTls).await?;
    let (seen, sees) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(_) = message
                && seen.send(Instant::now()).is_err()
            {
                return;
            }
        }
    });
    client.batch_execute(&format!("listen {channel}")).await?;
    Ok((client, sees))
}

/// Appends and notifies in one statement.
pub(crate) struct Teller {
    client: Client,
    tell: Statement,
    session: String,
    channel: String,
    head: i64,
    /// Listens as long as it is there.
    _listener: Client,
}

impl Teller {
    pub(crate) async fn prepare(client: Client, listener: Client, channel: &str) -> Result<Self> {
        Ok(Self {
            tell: client.prepare(TELL).await?,
            client,
            session: session_name(0),
            channel: channel.to_owned(),
            head: 0,
            _listener: listener,
        })
    }
}

#[async_trait]
impl Tells for Teller {
    async fn tell(&mut self) -> Result<()> {
        self.head += 1;
        let (index, told) = (self.head, self.head.to_string());
        self.client
            .execute(
                &self.tell,
                &[&self.session, &index, &id(index), &TYPE, &NOW, &PAYLOAD, &self.channel, &told],
            )
            .await?;
        Ok(())
    }
}
