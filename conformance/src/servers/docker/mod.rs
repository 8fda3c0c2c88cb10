//! Servers in containers, through testcontainers: reached from 127.0.0.1 alone, removed with their
//! value, and swept up after runs that could not.

mod container;
pub(super) mod postgres;
pub(super) mod redis;
mod sweep;

pub(super) use container::Container;
