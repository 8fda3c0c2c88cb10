//! Streams: every event after the start, in order, once; one jump, to a marker.

use a2_core::EventType;

use super::view::View;
use super::{Found, Invariant};

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    let vanish = view.history.unanswered_may_vanish;
    let end = view.events.keys().next_back().copied().unwrap_or(0);
    for stream in &view.streams {
        let mut last = stream.after;
        for (_, event) in &stream.events {
            let index = event.index.get();
            let jumps = event.event_type == EventType::CLEAR && index > last;
            found.unless(index == last + 1 || jumps, Invariant::Stream, || {
                format!("after {last} a stream gives {index}")
            });
            last = index;
        }
        // Behind a copy that takes over, a head that went back ends a stream with an error.
        if let Some(error) = stream.ended {
            found.unless(vanish && error.is_some(), Invariant::Stream, || {
                format!("a stream ended after {last}: {error:?}")
            });
        } else if !stream.dropped {
            found.unless(last >= end, Invariant::Stream, || {
                format!("a stream stands at {last}, the log at {end}")
            });
        }
    }
}
