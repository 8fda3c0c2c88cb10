//! What a caller pays before a store is asked: checking JSON text, serializing, naming, building
//! requests. `cargo bench -p a2-core`.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark may panic, its groups are no API"
)]

use std::hint::black_box;
use std::time::Duration;

use a2_core::{
    Append, ClaimAvailable, Consumer, EventId, HeadRef, Json, Lane, NewEvent, Served,
    ServedConsumer, SessionId, Target,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PAYLOAD: &str = r#"{"order":"o-20391","customer":"c-118","lines":[{"sku":"tea-green-250","count":2,"price":6.5},{"sku":"mug-blue","count":1,"price":12.0}],"currency":"EUR","total":25.0,"placed":"2026-03-01T10:20:30Z"}"#;

fn json(c: &mut Criterion) {
    let mut group = c.benchmark_group("json");
    group.throughput(Throughput::Bytes(PAYLOAD.len() as u64));
    group.bench_function("parse", |b| b.iter(|| Json::parse(black_box(PAYLOAD)).unwrap()));
    let padded = PAYLOAD.replace(':', " : ");
    group.bench_function("parse, white space", |b| {
        b.iter(|| Json::parse(black_box(&padded)).unwrap())
    });
    let value: serde_json::Value = serde_json::from_str(PAYLOAD).unwrap();
    group.bench_function("from_serialize", |b| {
        b.iter(|| Json::from_serialize(black_box(&value)).unwrap())
    });
    let json = Json::parse(PAYLOAD).unwrap();
    group.bench_function("deserialize", |b| {
        b.iter(|| black_box(&json).deserialize::<serde_json::Value>().unwrap());
    });
    group.finish();
}

fn names(c: &mut Criterion) {
    let mut group = c.benchmark_group("name");
    group.bench_function("short", |b| b.iter(|| SessionId::new(black_box("order-17")).unwrap()));
    let long = "x".repeat(200);
    group.bench_function("200 bytes", |b| b.iter(|| SessionId::new(black_box(&long)).unwrap()));
    group.bench_function("event id", |b| b.iter(EventId::generate));
    group.finish();
}

fn requests(c: &mut Criterion) {
    let payload = Json::parse(PAYLOAD).unwrap();
    let consumer = Consumer::new("billing").unwrap();
    let target = Target::lane(&consumer, Lane::new("order-17").unwrap()).unwrap();
    let served = Served::only([ServedConsumer::new(&consumer).unwrap()]).unwrap();
    let event =
        || NewEvent::from_json("order.placed", payload.clone()).unwrap().target(target.clone());
    let mut group = c.benchmark_group("request");
    group.bench_function("append of 1", |b| {
        b.iter(|| Append::one(event()).unwrap().served(served.clone()));
    });
    group.throughput(Throughput::Elements(100));
    group.bench_function("append of 100", |b| {
        b.iter(|| Append::new((0..100).map(|_| event())).unwrap());
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("claim", |b| {
        b.iter(|| {
            ClaimAvailable::new("w", Duration::from_secs(30)).unwrap().served(served.clone())
        });
    });
    let head = HeadRef::new(consumer, target.cursor_key(), 7.into());
    group.bench_function("clone a head's name", |b| b.iter(|| black_box(&head).clone()));
    group.finish();
}

criterion_group!(benches, json, names, requests);
criterion_main!(benches);
