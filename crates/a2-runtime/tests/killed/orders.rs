//! A saga: whoever paid has a parcel or the money back, whoever is killed.

use crate::killing::Example;

const ROUNDS: usize = 25;

#[test]
fn killed_sagas_end_like_one_that_was_not() {
    let (report, logs) = Example("orders").ends_the_same(ROUNDS);
    let orders: serde_json::Value = serde_json::from_str(&report).unwrap();
    let orders = orders.as_array().unwrap();
    assert_eq!((orders.len(), logs.len()), (40, 40));
    let of = |what: &dyn Fn(&serde_json::Value) -> bool| {
        orders.iter().filter(|order| what(&order[1])).count()
    };
    let cancelled = |reason: &str| of(&|order| order["cancelled"] == reason);
    assert_eq!(of(&|order| order["shipped"] == true), 20);
    assert_eq!(cancelled("out of stock"), 8);
    assert_eq!(cancelled("no carrier takes it"), 7);
    assert_eq!(cancelled("not paid in time"), 5);
    // Whoever paid has a parcel or the money back; what was reserved was shipped or released.
    for order in orders {
        let order = &order[1];
        let kept = order["paid"].as_u64().unwrap() - order["refunded"].as_u64().unwrap();
        assert_eq!(order["shipped"] == true, kept > 0, "{order}");
        assert_eq!(order["shipped"], order["reserved"], "{order}");
    }
    let steps = logs.values().flat_map(|log| log.values());
    assert_eq!(steps.filter(|(event_type, _)| event_type == "parcel.shipped").count(), 20);
}
