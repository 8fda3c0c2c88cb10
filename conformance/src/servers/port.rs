//! Free ports, below those that the system gives to outgoing connections, so that none of these
//! takes a port between the look and the server's start.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// What a server needs of its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ports {
    /// One.
    One,
    /// The port ten thousand above too, as a node of a Redis Cluster.
    WithBus,
}

/// The bus of a cluster's node is this far above its port.
const BUS: u16 = 10_000;

impl Ports {
    /// A port that is free now. Others may take it: who starts there must be ready to try again.
    pub(super) fn free(self) -> Option<u16> {
        (0..200).map(|_| random()).find(|port| self.are_free(*port))
    }

    /// Whether nobody listens there.
    pub(super) fn are_free(self, port: u16) -> bool {
        is_free(port) && (self == Self::One || is_free(port + BUS))
    }
}

/// From 12,000 to 21,999: the bus is below 32,768 then, where outgoing connections begin.
fn random() -> u16 {
    let offset = RandomState::new().hash_one(0_u8) % 10_000;
    12_000 + u16::try_from(offset).unwrap_or_default()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_somebody_listens_at_is_not_free() {
        let (port, taken) = loop {
            let port = Ports::WithBus.free().unwrap();
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port + BUS)) {
                break (port, listener);
            }
        };
        assert!(!Ports::WithBus.are_free(port));
        assert!(!Ports::One.are_free(taken.local_addr().unwrap().port()));
        assert!((12_000..22_000).contains(&port));
    }
}
