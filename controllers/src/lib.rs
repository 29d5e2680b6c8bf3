//! Observe, decide, act and report for every pool and machine; knows ports, never an SDK.
