//! A session's part of a history: its calls, and every event that anybody has seen of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use a2_core::{DispatchedHead, Event, EventId, EventType, LogTypes, SessionId};

use super::order::Growing;
use super::{Found, History, Invariant};
use crate::history::note::{Answer, Asked, Note, Sent};

/// A call. Its places are those of its notes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op<'a> {
    pub(super) begin: usize,
    /// None while the call may still be done.
    pub(super) end: Option<usize>,
    pub(super) asked: &'a Asked,
    pub(super) answer: Option<&'a Answer>,
}

impl<'a> Op<'a> {
    /// Whether it was answered before that note.
    pub(super) fn ended_before(&self, place: usize) -> bool {
        self.end.is_some_and(|end| end < place)
    }

    /// The heads that it has claimed.
    pub(super) fn claimed(&self) -> &'a [DispatchedHead] {
        match self.answer {
            Some(
                Answer::Claimed { heads }
                | Answer::Completed { heads, .. }
                | Answer::Failed { heads, .. }
                | Answer::Superseded { heads },
            ) => heads,
            _ => &[],
        }
    }

    /// The events that it was asked to append.
    fn sent(&self) -> &'a [Sent] {
        match self.asked {
            Asked::Append { events } => events,
            Asked::Complete { returned, .. } => returned,
            Asked::Schedule { event, .. } => std::slice::from_ref(event),
            _ => &[],
        }
    }

    /// The events of its answer.
    pub(super) fn events(&self) -> impl Iterator<Item = &'a Event> {
        let events: &[Event] = match self.answer {
            Some(
                Answer::Appended { events, .. }
                | Answer::Events { events, .. }
                | Answer::Completed { events, .. }
                | Answer::State { events, .. },
            ) => events,
            _ => &[],
        };
        let heads: &[DispatchedHead] = match self.answer {
            Some(Answer::DeadLetters { heads }) => heads,
            _ => self.claimed(),
        };
        let of_heads = heads.iter().flat_map(|head| [&head.event].into_iter().chain(&head.run));
        events.iter().chain(of_heads)
    }

    /// Whether the session's log, as it was answered, was only looked at.
    fn is_look(&self) -> bool {
        let looks = [
            matches!(self.asked, Asked::Read { .. } | Asked::ReadState { .. }),
            matches!(self.asked, Asked::Cursors | Asked::DeadLetters),
        ];
        looks.contains(&true)
    }

    /// Whether the events that it was sent with may be in the log through it.
    pub(super) fn may_have_appended(&self) -> bool {
        match self.answer {
            None => true,
            Some(Answer::Appended { .. } | Answer::Completed { .. } | Answer::Scheduled { .. }) => {
                true
            }
            Some(_) => false,
        }
    }

    /// The log's head and the latest marker, as answered.
    fn ends(&self) -> (u64, u64) {
        match self.answer {
            Some(
                Answer::Events { head, clear_index, .. }
                | Answer::Cursors { head, clear_index, .. }
                | Answer::Cleared { index: head, clear_index, .. },
            ) => (head.get(), clear_index.get()),
            Some(Answer::State { clear_index, .. }) => (0, clear_index.get()),
            _ => (0, 0),
        }
    }
}

/// What a stream gave.
#[derive(Debug)]
pub(super) struct Followed<'a> {
    pub(super) after: u64,
    pub(super) events: Vec<(usize, &'a Event)>,
    pub(super) ended: Option<&'a Option<String>>,
    pub(super) dropped: bool,
}

/// An event that somebody has seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) event: &'a Event,
    /// The first note with it.
    pub(super) at: usize,
}

/// A session's part of a history.
pub(super) struct View<'a> {
    pub(super) history: &'a History,
    pub(super) ops: Vec<Op<'a>>,
    pub(super) streams: Vec<Followed<'a>>,
    pub(super) events: BTreeMap<u64, Seen<'a>>,
    /// Under which indexes an id was seen, the lowest first.
    pub(super) indexes: HashMap<&'a EventId, BTreeSet<u64>>,
    /// The calls that an event was sent with.
    pub(super) sent: HashMap<&'a EventId, Vec<(&'a Sent, Op<'a>)>>,
    pub(super) markers: BTreeSet<u64>,
    /// The log's head, as somebody knew it.
    pub(super) heads: Growing,
    /// The latest marker, as somebody knew it.
    pub(super) clears: Growing,
    /// The store's time.
    pub(super) times: Growing,
}

impl<'a> View<'a> {
    pub(super) fn of(history: &'a History, session: &SessionId, found: &mut Found<'_>) -> Self {
        let (ops, streams) = collect(history, session);
        let mut view = Self {
            history,
            ops,
            streams,
            events: BTreeMap::new(),
            indexes: HashMap::new(),
            sent: HashMap::new(),
            markers: BTreeSet::new(),
            heads: Growing::default(),
            clears: Growing::default(),
            times: Growing::default(),
        };
        view.gather(found);
        view
    }

    fn gather(&mut self, found: &mut Found<'_>) {
        let (mut heads, mut clears, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let vanish = self.history.unanswered_may_vanish;
        let counts =
            |op: &Op<'_>| !vanish || !op.is_look() || op.begin >= self.history.settled_from;
        let mut seen: Vec<(usize, &'a Event)> = Vec::new();
        for op in &self.ops {
            for sent in op.sent() {
                self.sent.entry(&sent.id).or_default().push((sent, *op));
            }
            let Some(end) = op.end.filter(|_| counts(op)) else { continue };
            seen.extend(op.events().map(|event| (end, event)));
            let (head, clear) = op.ends();
            heads.push((end, head));
            clears.push((end, clear));
            let claimed = op.claimed().iter().filter_map(|head| head.state.last_claimed_at);
            let created = op.events().map(|event| event.created_at);
            let times_here = claimed.chain(created).map(|time| time.as_millis());
            times.push((end, u64::try_from(times_here.max().unwrap_or(0)).unwrap_or(0)));
        }
        if !vanish {
            seen.extend(self.streams.iter().flat_map(|stream| stream.events.iter().copied()));
        }
        seen.sort_by_key(|(at, _)| *at);
        for (at, event) in seen {
            let index = event.index.get();
            heads.push((at, index));
            let first = self.events.entry(index).or_insert(Seen { event, at });
            found.unless(first.event == event, Invariant::Kept, || {
                format!("event {index} was {:?} and became {event:?}", first.event)
            });
            self.indexes.entry(&event.id).or_default().insert(index);
            if event.event_type == EventType::CLEAR {
                self.markers.insert(index);
                clears.push((at, index));
            }
        }
        self.markers.extend(clears.iter().map(|(_, clear)| *clear).filter(|clear| *clear > 0));
        (self.heads, self.clears, self.times) =
            (Growing::new(heads), Growing::new(clears), Growing::new(times));
    }

    /// The latest known marker at or below an index; 0 without one.
    pub(super) fn lifetime_of(&self, index: u64) -> u64 {
        self.markers.range(..=index).next_back().copied().unwrap_or(0)
    }

    /// Whether the second index may belong to a later lifetime than the first.
    pub(super) fn may_be_cleared_between(&self, first: u64, second: u64) -> bool {
        if self.lifetime_of(second) > first {
            return true;
        }
        // A marker that nobody has seen: its clear has no answer, and it stands where nothing was seen.
        let unseen =
            second.saturating_sub(first + 1) > self.events.range(first + 1..second).count() as u64;
        let seen_at = self.events.get(&second).map_or(usize::MAX, |seen| seen.at);
        unseen
            && self.ops.iter().any(|op| {
                matches!(op.asked, Asked::Clear { .. }) && op.end.is_none() && op.begin < seen_at
            })
    }

    /// The events that a log takes, from one index to below another.
    pub(super) fn taken(
        &self,
        types: &'a LogTypes,
        from: u64,
        below: u64,
    ) -> impl DoubleEndedIterator<Item = u64> {
        let taken = |(index, seen): (&u64, &Seen<'_>)| {
            types.takes(&seen.event.event_type).then_some(*index)
        };
        self.events.range(from.min(below)..below).filter_map(taken)
    }
}

fn collect<'a>(history: &'a History, session: &SessionId) -> (Vec<Op<'a>>, Vec<Followed<'a>>) {
    let (mut ops, mut streams): (Vec<Op<'a>>, Vec<Followed<'a>>) = (Vec::new(), Vec::new());
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut stream_places: HashMap<u64, usize> = HashMap::new();
    for (at, note) in history.notes.iter().enumerate() {
        match note {
            Note::Began { call, session: Some(about), asked, .. } if about == session => {
                if let Asked::Stream { after } = asked {
                    stream_places.insert(*call, streams.len());
                    let after = after.get();
                    streams.push(Followed {
                        after,
                        events: Vec::new(),
                        ended: None,
                        dropped: false,
                    });
                } else {
                    places.insert(*call, ops.len());
                    ops.push(Op { begin: at, end: None, asked, answer: None });
                }
            }
            Note::Ended { call, answer } => {
                if let Some(op) = places.get(call).and_then(|place| ops.get_mut(*place)) {
                    (op.end, op.answer) = (Some(at), Some(answer));
                }
            }
            Note::Yielded { stream, event } => {
                let followed = stream_places.get(stream).and_then(|at| streams.get_mut(*at));
                if let Some(followed) = followed {
                    followed.events.push((at, event));
                }
            }
            Note::StreamEnded { stream, error } => {
                let followed = stream_places.get(stream).and_then(|at| streams.get_mut(*at));
                if let Some(followed) = followed {
                    followed.ended = Some(error);
                }
            }
            Note::StreamDropped { stream } => {
                let followed = stream_places.get(stream).and_then(|at| streams.get_mut(*at));
                if let Some(followed) = followed {
                    followed.dropped = true;
                }
            }
            Note::Killed { process } => {
                for (_, place) in
                    stream_places.iter().filter(|(n, _)| **n >> 32 == u64::from(*process))
                {
                    if let Some(followed) = streams.get_mut(*place) {
                        followed.dropped = true;
                    }
                }
            }
            Note::Began { .. } | Note::Draining | Note::Settled => {}
        }
    }
    (ops, streams)
}
