//! Streams: catch up, wait, never miss.
