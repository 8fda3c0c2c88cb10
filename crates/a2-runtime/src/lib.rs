//! Runs the handlers of programs that react to A2's session event logs.
