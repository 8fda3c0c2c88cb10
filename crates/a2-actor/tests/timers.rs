//! Timers: set by turns and from outside, fired once.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use a2_actor::{Actors, ActorsExt, Turn};
use a2_core::*;
use a2_runtime::{Handled, RetryPolicy};
use support::*;

const MINUTE: Duration = Duration::from_secs(60);

/// `remind X` adds X a minute later, `forget` takes that back.
async fn remind(items: Items, message: Change, turn: Turn) -> Handled<Items> {
    if let Change::Add(text) = &message {
        match text.split_once(' ') {
            Some(("remind", item)) => {
                turn.schedule(LIST, "reminder", MINUTE, add(item))?;
                return Ok(items);
            }
            Some(("fail", item)) => {
                turn.schedule(LIST, "reminder", MINUTE, add(item))?;
                return Err("not now".into());
            }
            _ if text == "forget" => {
                turn.unschedule(LIST, "reminder")?;
                return Ok(items);
            }
            _ => {}
        }
    }
    change(items, message, turn).await
}

/// Waits until the session's timers are these.
async fn timers(s: &a2_runtime::Session, keys: &[&str]) {
    until("the timers", || async {
        let timers = s.timers().await.unwrap();
        let found: Vec<_> = timers.iter().map(|timer| timer.key.as_str()).collect();
        (found == keys).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_turn_sets_and_removes_timers_in_the_order_of_its_messages() {
    let (clock, store, builder) = by_hand();
    let runtime = builder.actors([LIST.host(remind)]).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    list.call(add("remind one"), PATIENCE).await.unwrap();
    timers(&s, &["a2.actor:4:list:reminder"]).await;
    list.call(add("forget"), PATIENCE).await.unwrap();
    timers(&s, &[]).await;
    // The last one counts.
    for text in ["remind two", "forget", "remind three", "remind four"] {
        list.call(add(text), PATIENCE).await.unwrap();
    }
    until("four changes", || async {
        let cursors = store.all_cursors(s.id()).await.unwrap();
        let lane = cursors.iter().find(|cursor| cursor.consumer == "a2.actor.timer")?;
        let log = log(&store, "s").await;
        let last = log.iter().rfind(|event| event.event_type == "a2.actor.timer")?;
        (lane.head.is_none() && lane.position == last.index).then_some(())
    })
    .await;
    timers(&s, &["a2.actor:4:list:reminder"]).await;
    clock.advance(MINUTE);
    until("the reminder", || async { (list.state().await.unwrap() == ["four"]).then_some(()) })
        .await;
    timers(&s, &[]).await;
}

#[tokio::test]
async fn a_turn_that_fails_sets_no_timer() {
    let (_, store, builder) = by_hand();
    let once = Actors::new([LIST.host(remind)]).retry(RetryPolicy::new().budget(1));
    let runtime = builder.actors(once).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    LIST.of(&s).tell(add("fail x")).await.unwrap();
    dead_letters(&store, "s", 1).await;
    settled(&store).await;
    assert_eq!(types(&store, "s").await, ["a2.actor.message"]);
    timers(&s, &[]).await;
}

#[tokio::test]
async fn a_message_is_sent_later_from_outside_unless_the_session_is_cleared() {
    let (clock, store, builder) = by_hand();
    let runtime = builder.actors([LIST.host(remind)]).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    let due = list.schedule("k", MINUTE, add("late")).await.unwrap();
    assert_eq!(due, Timestamp::from_millis(1_060_000));
    clock.advance(MINUTE);
    nth(&store, "s", "a2.actor.state", 1).await;
    assert_eq!(list.state().await.unwrap(), ["late"]);
    list.schedule("k", MINUTE, add("never")).await.unwrap();
    list.call(add("remind never"), PATIENCE).await.unwrap();
    timers(&s, &["a2.actor:4:list:k", "a2.actor:4:list:reminder"]).await;
    s.clear().await.unwrap();
    clock.advance(MINUTE);
    runtime.idle().await.unwrap();
    assert_eq!(list.call(add("b"), PATIENCE).await.unwrap(), ["b"]);
}
