//! Listings: by consumer and name, from any place on; two in order as one.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use a2_core::Consumer;
use a2_core::engine::ListFrom;

/// The consumers that a listing has still to go through.
pub(crate) fn consumers<'a, N, V>(
    from: &ListFrom<'_, N>,
    all: &'a BTreeMap<Consumer, V>,
) -> impl Iterator<Item = (&'a Consumer, &'a V)> + use<'a, N, V> {
    let start = match *from {
        ListFrom::Start => Unbounded,
        ListFrom::Consumer(consumer) | ListFrom::After(consumer, _) => Included(consumer),
        ListFrom::PastConsumer(consumer) => Excluded(consumer),
    };
    all.range::<Consumer, _>((start, Unbounded))
}

/// Where the listing begins among the names of one of them.
pub(crate) fn names<'a, N>(
    from: &ListFrom<'a, N>,
    consumer: &Consumer,
) -> (Bound<&'a N>, Bound<&'a N>) {
    match *from {
        ListFrom::After(of, name) if of == consumer => (Excluded(name), Unbounded),
        _ => (Unbounded, Unbounded),
    }
}

/// Two ordered iterators as one; `in_order` says whether its first argument comes first.
pub(crate) fn merge<T>(
    a: impl Iterator<Item = T>,
    b: impl Iterator<Item = T>,
    in_order: impl Fn(&T, &T) -> bool,
) -> impl Iterator<Item = T> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if !in_order(first, second) => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
