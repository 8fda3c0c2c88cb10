//! The saga: what an order goes through, and how its steps are taken back.

use std::time::Duration;

use a2_runtime::{Context, Events, Fold, Handled, RetryPolicy, Runtime, RuntimeBuilder, lane};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// A dead process' work is taken over after this.
const TTL: Duration = Duration::from_secs(1);
/// How long stock is kept for who does not pay.
const TO_PAY: Duration = Duration::from_millis(150);

/// What happens to an order: the first three come from outside (`Expired` from a timer), the others are
/// the saga's steps.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    #[serde(rename = "order.placed")]
    Placed { customer: String, item: String },
    #[serde(rename = "order.paid")]
    Paid { cents: u64 },
    #[serde(rename = "order.expired")]
    Expired,
    #[serde(rename = "stock.reserved")]
    Reserved,
    #[serde(rename = "stock.released")]
    Released,
    #[serde(rename = "parcel.shipped")]
    Shipped,
    #[serde(rename = "payment.refunded")]
    Refunded { cents: u64 },
    #[serde(rename = "order.cancelled")]
    Cancelled { reason: String },
}
impl Events for Order {}

/// How an order stands.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) customer: String,
    pub(crate) item: String,
    pub(crate) paid: u64,
    pub(crate) refunded: u64,
    pub(crate) reserved: bool,
    pub(crate) shipped: bool,
    pub(crate) cancelled: Option<String>,
}

pub(crate) const STANDING: Fold<Standing, Order> =
    Fold::new("standing", 1, Standing::default, |order, event, _| match event {
        Order::Placed { customer, item } => (order.customer, order.item) = (customer, item),
        Order::Paid { cents } => order.paid += cents,
        Order::Expired => {}
        Order::Reserved => order.reserved = true,
        Order::Released => order.reserved = false,
        Order::Shipped => order.shipped = true,
        Order::Refunded { cents } => order.refunded += cents,
        Order::Cancelled { reason } => order.cancelled = Some(reason),
    });

impl Standing {
    pub(crate) fn is_settled(&self) -> bool {
        self.shipped || self.cancelled.is_some()
    }

    /// Takes back what was done, the last step first.
    fn cancel(&self, reason: &str) -> Vec<Order> {
        let mut steps = Vec::new();
        if self.paid > self.refunded {
            steps.push(Order::Refunded { cents: self.paid - self.refunded });
        }
        if self.reserved {
            steps.push(Order::Released);
        }
        if self.cancelled.is_none() {
            steps.push(Order::Cancelled { reason: reason.to_owned() });
        }
        steps
    }
}

/// A runtime with the saga.
pub(crate) fn runtime(builder: RuntimeBuilder) -> a2_runtime::a2_core::Result<Runtime> {
    // One lane an order: its steps come one after the other, and each sees what the last one did.
    let saga = lane("saga", |_: &Order| "steps", step).types([
        "order.placed",
        "order.paid",
        "order.expired",
    ]);
    let retries = Duration::from_millis(40);
    let retry = RetryPolicy::new().first(retries).longest(retries);
    builder.consumer(saga).retry(retry).ttl(TTL).sweep_every(TTL).build()
}

async fn step(event: Order, cx: Context) -> Handled<Vec<Order>> {
    let order = cx.session().state(&STANDING).await?;
    Ok(match event {
        Order::Placed { item, .. } => {
            call_service("warehouse", &cx, '7').await?;
            if item == "unicorn" {
                return Ok(order.cancel("out of stock"));
            }
            cx.session().schedule("to pay", TO_PAY, Order::Expired).await?;
            vec![Order::Reserved]
        }
        Order::Paid { .. } if order.cancelled.is_some() => order.cancel("too late"),
        Order::Paid { .. } => {
            call_service("carrier", &cx, '4').await?;
            match order.item.as_str() {
                "piano" => order.cancel("no carrier takes it"),
                _ => vec![Order::Shipped],
            }
        }
        Order::Expired if order.paid == 0 => order.cancel("not paid in time"),
        _ => Vec::new(),
    })
}

/// A service on the network: slow, and down at the first attempt for every tenth order.
async fn call_service(name: &str, cx: &Context, down_for: char) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let is_down = cx.attempt() == 1 && cx.session().id().as_str().ends_with(down_for);
    ensure!(!is_down, "the {name} service is down");
    Ok(())
}
