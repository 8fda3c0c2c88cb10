//! Errors: stable codes with what a program needs to act, and nothing written.

use a2_core::{
    Append, CompleteAttempt, ErrorKind, EventId, FailAttempt, Page, PageToken, SessionId, StoreExt,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "errors.not_found" => not_found: rules(R52, R56, R88);
    "errors.not_found.empty_session" => not_found_empty_session: rules(R1, R88);
    "errors.partial_duplicate_batch" => partial_duplicate_batch: rules(R40, R52, R88);
    "errors.conflicts_are_final" => conflicts_are_final: rules(R89);
    "errors.text" => text: rules(R14, R88);
    "errors.handle_goes_on" => handle_goes_on: rules(R37);
];

#[track_caller]
fn is_final(error: &a2_core::Error) {
    assert!(!error.is_retryable(), "{error}");
    assert!(!error.outcome_unknown(), "{error}");
}

async fn not_found(cx: Cx) {
    let s = cx.session("not-found");
    append(&cx, &s, many("e", 3)).await;
    for head in [event_head("c", 4), lane_head("c", "l", 4), log_head("c", "l", 99)] {
        let expected = ErrorKind::NotFound { session: s.clone(), index: head.index };
        let complete = CompleteAttempt::new(head.clone(), 1);
        let error = assert_code(cx.store().complete_attempt(&s, complete).await, "NOT_FOUND");
        assert_eq!(*error.kind(), expected);
        let fail = FailAttempt::new(head, 1, "boom");
        let error = assert_code(cx.store().fail_attempt(&s, fail).await, "NOT_FOUND");
        assert_eq!(*error.kind(), expected);
        is_final(&error);
    }
}

async fn not_found_empty_session(cx: Cx) {
    let s = cx.session("empty");
    let complete = CompleteAttempt::new(event_head("c", 1), 1);
    assert_code(cx.store().complete_attempt(&s, complete).await, "NOT_FOUND");
    assert_code(
        cx.store().fail_attempt(&s, FailAttempt::new(event_head("c", 1), 1, "boom")).await,
        "NOT_FOUND",
    );
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
}

async fn partial_duplicate_batch(cx: Cx) {
    let s = cx.session("partial");
    append(&cx, &s, [ev("p").target(to_event("c")), ev("k2"), ev("k1")]).await;
    let head = claim_one(&cx, &s, "c").await;
    let existing = ["k1", "k2"].map(|id| EventId::new(id).unwrap()).to_vec();
    // By append and by complete_attempt alike, in the order of the request.
    let three = ["k1", "new", "k2"].map(ev);
    let error =
        assert_code(cx.store().append(&s, batch(three.clone())).await, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(*error.kind(), ErrorKind::PartialDuplicateBatch { existing: existing.clone() });
    is_final(&error);
    let request = complete(&head).events(three).unwrap();
    let error =
        assert_code(cx.store().complete_attempt(&s, request).await, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(*error.kind(), ErrorKind::PartialDuplicateBatch { existing });
    finish(&cx, &s, &head).await;
}

async fn conflicts_are_final(cx: Cx) {
    let s = cx.session("final");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    clear(&cx, &s).await;
    for (request, code) in [
        (batch([ev("x")]).expected_head(at(1)), "HEAD_CONFLICT"),
        (batch([ev("x")]).origin_index(at(1)), "SESSION_CLEARED"),
        (batch([ev("x").cause(head.cause())]), "SUPERSEDED_ATTEMPT"),
    ] {
        is_final(&assert_code(cx.store().append(&s, request).await, code));
    }
    is_final(&assert_code(SessionId::new(""), "INVALID_INPUT"));
    is_final(&assert_code(Append::new([ev("x"), ev("x")]), "INVALID_INPUT"));
    assert_eq!(indexes(&log(&cx, &s).await), [2]);
}

async fn text(cx: Cx) {
    let s = cx.session("text");
    append(&cx, &s, many("e", 2)).await;
    let error = cx.store().append(&s, batch([ev("x")]).expected_head(at(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "the log's head is 2, not 1 as expected");
    let junk = Page::at(PageToken::from_bytes(*b"junk"));
    let error = cx.store().cursors(&s, junk).await.unwrap_err();
    let ErrorKind::InvalidInput { field, rule } = error.kind() else { panic!("{error}") };
    assert_eq!(field, "page.token", "the field");
    assert!(rule.starts_with("must "), "and the rule: {rule}");
}

async fn handle_goes_on(cx: Cx) {
    let s = cx.session("goes-on");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    for round in 0..50 {
        let partial = batch([ev("a"), ev("b")]);
        assert_code(cx.store().append(&s, partial).await, "PARTIAL_DUPLICATE_BATCH");
        let missing = CompleteAttempt::new(event_head("c", 1_000), 1);
        assert_code(cx.store().complete_attempt(&s, missing).await, "NOT_FOUND");
        let owned = complete(&head).events([ev("a")]).unwrap();
        assert_code(cx.store().complete_attempt(&s, owned).await, "PARTIAL_DUPLICATE_BATCH");
        // A refusal leaves nothing behind that the next call would trip over.
        let fine = append(&cx, &s, [ev(&format!("fine{round}"))]).await;
        assert_eq!(fine[0].index, round + 2);
    }
    finish(&cx, &s, &head).await;
}
