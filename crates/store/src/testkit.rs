//! Tools for testing stores: the conformance suite, the differential test, the fault-injecting wrapper.
