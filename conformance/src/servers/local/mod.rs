//! Servers from the binaries of this machine: each in a temporary folder, on a free port of
//! 127.0.0.1, as an ordinary user.

mod binaries;
mod folder;
pub(super) mod pgbouncer;
pub(super) mod postgres;
mod process;
pub(super) mod redis;
mod signal;
mod user;

pub use process::Process;
