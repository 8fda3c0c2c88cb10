//! Examples that are killed at any moment and run again end like those that were not.

#![allow(clippy::unwrap_used)]

mod killing;
mod orders;
mod sales;
mod webhooks;
