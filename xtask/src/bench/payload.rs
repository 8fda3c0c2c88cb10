//! The data of every workload: some 200 bytes of JSON an event, 64 sessions.

use a2_core::{
    ClaimAvailable, Consumer, Json, Lane, NewEvent, Result, Served, ServedConsumer, SessionId,
    Target,
};
use std::time::Duration;

/// A payload of the size that is usual for domain events.
pub(crate) const PAYLOAD: &str = concat!(
    r#"{"order":"o-20391","customer":"c-118","lines":[{"sku":"tea-green-250","count":2,"price":"#,
    r#"6.5},{"sku":"mug-blue","count":1,"price":12.0}],"currency":"EUR","total":25.0,"#,
    r#""placed":"2026-03-01T10:20:30Z","note":"gift"}"#
);
/// The type of every event.
pub(crate) const TYPE: &str = "order.placed";
/// The consumer whose heads are claimed.
pub(crate) const CONSUMER: &str = "worker";
/// The lane that events are for.
pub(crate) const LANE: &str = "lane-1";
/// The reducer of the snapshots.
pub(crate) const REDUCER: &str = "totals";
/// Who claims.
pub(crate) const HOLDER: &str = "holder-1";
/// How long a claim lasts.
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// How many sessions a workload spreads over.
pub(crate) const SESSIONS: usize = 64;

/// The name of session number `n`.
pub(crate) fn session_name(n: usize) -> String {
    format!("session-{n}")
}

/// What the workers of a workload share, made once.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) payload: Json,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) served: Served,
    pub(crate) target: Target,
}

impl Data {
    pub(crate) fn new() -> Result<Self> {
        let consumer = Consumer::new(CONSUMER)?;
        Ok(Self {
            payload: Json::parse(PAYLOAD)?,
            sessions: (0..SESSIONS)
                .map(|n| SessionId::new(session_name(n)))
                .collect::<Result<_>>()?,
            served: Served::only([ServedConsumer::new(&consumer)?])?,
            target: Target::lane(consumer, Lane::new(LANE)?)?,
        })
    }

    /// An event for nobody.
    pub(crate) fn plain(&self) -> Result<NewEvent> {
        NewEvent::from_json(TYPE, self.payload.clone())
    }

    /// An event for the one lane.
    pub(crate) fn event(&self) -> Result<NewEvent> {
        Ok(self.plain()?.target(self.target.clone()))
    }

    /// A claim of one head.
    pub(crate) fn claim(&self) -> Result<ClaimAvailable> {
        Ok(ClaimAvailable::new(HOLDER, TTL)?.limit(1)?.served(self.served.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_about_200_bytes_of_json() {
        assert_eq!(Json::parse(PAYLOAD).unwrap().as_str(), PAYLOAD);
        assert!((180..=220).contains(&PAYLOAD.len()), "{}", PAYLOAD.len());
    }
}
