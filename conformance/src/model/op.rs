//! What a history is made of: operations over small domains, which refer to the session's own
//! heads, attempts and indexes, so that they keep their meaning when others are taken away.
//!
//! Their debug text is Rust: a failure prints a script that can be pasted as a replay.

use std::fmt;

/// An operation, on which handle, and how often in a row: a second time is a retry after a lost
/// answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// Which of the store's two handles.
    pub handle: u8,
    /// How often the same request is sent.
    pub times: u8,
    /// The operation.
    pub op: Op,
}

/// Sends `op` once, on the first handle.
#[must_use]
pub fn once(op: Op) -> Step {
    Step { handle: 0, times: 1, op }
}

/// Sends `op` once, on the second handle.
#[must_use]
pub fn other(op: Op) -> Step {
    Step { handle: 1, times: 1, op }
}

/// Sends `op` twice, on the first handle.
#[must_use]
pub fn twice(op: Op) -> Step {
    Step { handle: 0, times: 2, op }
}

/// Sends `op` twice, on the second handle.
#[must_use]
pub fn other_twice(op: Op) -> Step {
    Step { handle: 1, times: 2, op }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = match (self.handle, self.times) {
            (0, 0 | 1) => "once",
            (0, _) => "twice",
            (_, 0 | 1) => "other",
            (_, _) => "other_twice",
        };
        // Lists of the operations are vectors.
        let op = format!("{:?}", self.op).replace('[', "vec![");
        write!(f, "{sent}({op})")
    }
}

/// One operation. Sessions, consumers, holders and all other names are numbers into small lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the operations' own")]
pub enum Op {
    /// The clock goes on.
    Advance(Time),
    /// The n-th latest write is sent again as it was.
    Resend(u8),
    Append {
        session: u8,
        events: Vec<Ev>,
        served: Serves,
        expected_head: Option<At>,
        origin: Option<At>,
    },
    Read {
        session: u8,
        after: At,
        through: Option<At>,
        limit: Option<u8>,
    },
    Stream {
        session: u8,
        start_after: At,
    },
    Claim {
        session: u8,
        claim: Take,
    },
    Renew {
        session: u8,
        holder: Option<u8>,
        claims: Vec<Try>,
        ttl: u8,
    },
    Release {
        session: u8,
        holder: Option<u8>,
        claims: Vec<Try>,
    },
    Complete {
        session: u8,
        attempt: Try,
        events: Vec<Ev>,
        served: Serves,
        through: Option<At>,
        then_claim: Option<Take>,
    },
    Fail {
        session: u8,
        attempt: Try,
        error: u8,
        max_failures: Option<u8>,
        retry_after: u8,
        then_claim: Option<Take>,
    },
    DeadLetters {
        session: u8,
        limit: u8,
    },
    Cursors {
        session: u8,
        limit: u8,
    },
    Redrive {
        session: u8,
        head: Which,
        skip: bool,
        served: Serves,
    },
    WakeLog {
        session: u8,
        consumer: u8,
        log: Declared,
    },
    ReadState {
        session: u8,
        reducer: u8,
        through: Option<At>,
        snapshot_through: Option<At>,
    },
    PutSnapshots {
        session: u8,
        reducer: u8,
        writes: Vec<Snap>,
    },
    Clear {
        session: u8,
        if_last_index: Option<At>,
        cause: Option<Try>,
        id: Id,
    },
    Reclaim {
        session: u8,
    },
    Schedule {
        session: u8,
        key: u8,
        after: u8,
        event: Ev,
        origin: Option<At>,
    },
    Unschedule {
        session: u8,
        key: u8,
    },
    Timers {
        session: u8,
        limit: u8,
    },
    FireTimers {
        session: u8,
        served: Serves,
        limit: Option<u8>,
    },
    Sessions {
        limit: u8,
    },
    Pending {
        served: Serves,
        limit: u8,
    },
    SetPresence {
        participant: u8,
        fields: Vec<(u8, Option<u8>)>,
        seen: Option<u8>,
        ttl: u8,
    },
    ReadPresence,
}

/// How far the clock goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// So many milliseconds.
    By(u8),
    /// To the n-th next moment at which a lease, a hold, a timer or a presence row is over.
    To(u8),
    /// To a millisecond before that.
    Before(u8),
    /// So many milliseconds back, as a server's clock may. Not while there is presence: whether
    /// what was gone is there again then is open.
    Back(u8),
}

/// An index, named by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// This one.
    Nth(u8),
    /// So far from the log's head.
    FromHead(i8),
    /// So far from the latest clear.
    FromClear(i8),
    /// The largest there is.
    Last,
}

/// An event's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// One that was never used.
    Fresh,
    /// One that the request makes up.
    Auto,
    /// One of a few.
    Pool(u8),
    /// That of the event at an index, in whatever lifetime.
    Of(At),
}

/// An event to append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are an event's own")]
pub struct Ev {
    pub id: Id,
    pub kind: u8,
    pub payload: u8,
    pub targets: Vec<Aim>,
    pub cause: Option<Try>,
}

/// What an event is appended for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// This consumer's event cursor.
    Each(u8),
    /// This consumer's lane.
    Lane(u8, u8),
}

/// Which of a consumer's cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// An event's.
    Event,
    /// A lane's.
    InLane(u8),
    /// A log's.
    InLog(u8),
}

/// Which head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The n-th that is held now.
    Held(u8),
    /// The n-th latest that was ever claimed.
    Past(u8),
    /// The n-th dead letter.
    Dead(u8),
    /// A cursor's, wherever it stands; of a consumer's event cursors the first one's.
    Cursor(u8, On),
    /// One made up.
    Made(u8, On, At),
}

/// An attempt on a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// The head.
    pub head: Which,
    /// How far the attempt's number is from the claim's.
    pub off: i8,
}

/// What a deployment serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All.
    All,
    /// These entries, the same consumer once.
    Only(Vec<Entry>),
}

/// A served consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are an entry's own")]
pub struct Entry {
    pub consumer: u8,
    pub log: Option<Declared>,
    pub max_failures: Option<u8>,
}

/// A log's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: u8,
    /// A bit for each type that it takes; none are all.
    pub types: u8,
    /// Whether it begins with what is stored.
    pub backfill: bool,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are a claim's own")]
pub struct Take {
    pub holder: u8,
    pub ttl: u8,
    pub limit: Option<u8>,
    pub served: Serves,
    pub exclude: Vec<Which>,
    pub max_failures: Option<u8>,
    pub through: Option<At>,
    pub run: u8,
}

/// A snapshot write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are a write's own")]
pub struct Snap {
    pub index: At,
    pub state: u8,
    pub pins: Vec<Which>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_printed_as_it_is_written() {
        let attempt = Try { head: Which::Held(0), off: -1 };
        let id = Id::Of(At::FromClear(-1));
        let event = Ev { id, kind: 1, payload: 0, targets: vec![Aim::Lane(0, 1)], cause: None };
        let op = Op::Complete {
            session: 0,
            attempt,
            events: vec![event],
            served: Serves::Only(vec![]),
            through: Some(At::Last),
            then_claim: None,
        };
        assert_eq!(
            format!("{:?}", other_twice(op)),
            "other_twice(Complete { session: 0, attempt: Try { head: Held(0), off: -1 }, \
             events: vec![Ev { id: Of(FromClear(-1)), kind: 1, payload: 0, \
             targets: vec![Lane(0, 1)], cause: None }], served: Only(vec![]), \
             through: Some(Last), then_claim: None })"
        );
        assert_eq!(format!("{:?}", once(Op::Advance(Time::By(5)))), "once(Advance(By(5)))");
    }
}
