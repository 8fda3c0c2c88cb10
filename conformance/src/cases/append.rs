//! Appending: indexes, ids, replays, expectations, fences.

use crate::Cx;
use crate::case::cases;
use crate::kit::{append, ev, indexes, log};

cases![
    "append.index.dense" => index_dense;
    "append.index.another_handle" => another_handle: needs(Another);
];

async fn index_dense(cx: Cx) {
    let s = cx.session("dense");
    let first = append(&cx, &s, [ev("a"), ev("b")]).await;
    let second = append(&cx, &s, [ev("c")]).await;
    assert_eq!(indexes(&first), [1, 2]);
    assert_eq!(indexes(&second), [3]);
    assert_eq!(indexes(&log(&cx, &s).await), [1, 2, 3]);
}

async fn another_handle(cx: Cx) {
    let other = cx.another().await;
    let s = cx.session("handles");
    append(&cx, &s, [ev("a")]).await;
    append(&other, &s, [ev("b")]).await;
    assert_eq!(indexes(&log(&cx, &s).await), [1, 2]);
    assert_eq!(indexes(&log(&other, &s).await), [1, 2]);
}
