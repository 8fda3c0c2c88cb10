//! A projection: its sums have every event once, whoever is killed.

use crate::killing::Example;

const ROUNDS: usize = 15;

#[test]
fn killed_projections_end_like_one_that_was_not() {
    let (report, logs) = Example("sales").ends_the_same(ROUNDS);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&report).unwrap();
    let sum = |column: &str| rows.iter().map(|row| row[column].as_i64().unwrap()).sum::<i64>();
    let events = logs.values().flat_map(|log| log.values());
    let (mut orders, mut cents) = (0, 0);
    for (event_type, payload) in events.filter(|(event_type, _)| event_type.starts_with("order.")) {
        let order: serde_json::Value = serde_json::from_str(payload).unwrap();
        let sign = if event_type == "order.placed" { 1 } else { -1 };
        orders += sign;
        cents += sign * order["cents"].as_i64().unwrap();
    }
    assert_eq!((rows.len(), orders), (12, 4 * (120 - 17)));
    assert_eq!((sum("orders"), sum("cents")), (orders, cents));
}
