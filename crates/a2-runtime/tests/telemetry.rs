//! What is counted.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_runtime::{Context, HandlerError, RetryPolicy, concurrent};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use support::*;

/// Keeps the values of all metrics by name and labels; of histograms how many there were.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, f64>>>);

struct One(Kept, String);

impl Kept {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        Arc::new(One(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }

    fn get(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

impl One {
    fn set(&self, change: impl FnOnce(f64) -> f64) {
        let mut kept = self.0.0.lock().unwrap();
        let value = kept.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for One {
    fn increment(&self, by: u64) {
        self.set(|value| value + by as f64);
    }
    fn absolute(&self, to: u64) {
        self.set(|_| to as f64);
    }
}

impl GaugeFn for One {
    fn increment(&self, by: f64) {
        self.set(|value| value + by);
    }
    fn decrement(&self, by: f64) {
        self.set(|value| value - by);
    }
    fn set(&self, to: f64) {
        One::set(self, |_| to);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!(value >= 0.0);
        self.set(|count| count + 1.0);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

#[tokio::test]
async fn appends_claims_attempts_retries_and_dead_letters_are_counted() {
    let kept = Kept::default();
    let _recorder = metrics::set_default_local_recorder(&kept);
    let (_, store, builder) = by_hand();
    let handler = |order: Order, cx: Context| async move {
        let Order::Placed { item } = order;
        match item.as_str() {
            "again" if cx.attempt() == 1 => Err("once".into()),
            "never" => Err(HandlerError::non_retriable("never")),
            _ => Ok(sent(&item)),
        }
    };
    let at_once = RetryPolicy::new().first(Duration::ZERO);
    let runtime = builder.retry(at_once).consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(["tea", "again", "never"].map(placed)).await.unwrap();
    dead_letters(&store, "s", 1).await;
    runtime.idle().await.unwrap();
    orders.schedule("t", Duration::ZERO, sent("timer")).await.unwrap();
    event_at(&store, "s", 6).await;
    let _ = runtime.shutdown(Duration::from_secs(1)).await;
    let of = |name: &str| kept.get(&format!("a2_runtime_{name}"));
    assert_eq!(of("events_appended_total by=program"), 3.0);
    assert_eq!(of("events_appended_total by=handler"), 2.0);
    assert_eq!(of("events_appended_total by=timer"), 1.0);
    assert_eq!(of("append_seconds "), 1.0);
    assert_eq!(of("heads_claimed_total consumer=c"), 4.0);
    assert_eq!(of("lag_seconds consumer=c"), 3.0);
    assert_eq!(of("attempt_seconds consumer=c"), 4.0);
    assert_eq!(of("attempts_total consumer=c outcome=completed"), 2.0);
    assert_eq!(of("attempts_total consumer=c outcome=failed"), 1.0);
    assert_eq!(of("attempts_total consumer=c outcome=dead_letter"), 1.0);
    assert_eq!(of("attempts_running consumer=c"), 0.0);
    assert!(of("claim_seconds ") >= 1.0);
}

#[tokio::test]
async fn the_age_of_the_oldest_head_is_told() {
    let kept = Kept::default();
    let _recorder = metrics::set_default_local_recorder(&kept);
    let (clock, _, builder) = by_hand();
    let handler = |_: Order, cx: Context| async move {
        cx.cancelled().await;
        Ok(())
    };
    let runtime = builder.consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    let of = |name: &str| kept.get(&format!("a2_runtime_{name} consumer=c"));
    until("the attempt", || async { (of("attempts_running") > 0.0).then_some(()) }).await;
    // Past a sweep, with whatever jitter.
    clock.advance(Duration::from_secs(45));
    until("a sweep", || async { (of("oldest_head_seconds") > 0.0).then_some(()) }).await;
    assert_eq!(of("oldest_head_seconds"), 45.0);
}
