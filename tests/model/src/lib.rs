//! A model of the API server and of core Cluster API, and the simulator as cloud port, for tests in virtual time.
