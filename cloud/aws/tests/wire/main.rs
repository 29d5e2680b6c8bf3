//! Tests of the adapter through the cloud port: exact requests and replies over a replayed connection, and round
//! trips through the simulator's HTTP front. One binary, since linking the EC2 client takes long.

mod agreement;
mod connector;
mod credentials;
mod errors;
mod fixtures;
mod group_requests;
mod identities;
mod images;
mod permissions;
mod pool_life;
mod queue;
mod read_requests;
mod refreshes;
mod refusals;
mod replay;
mod replies;
mod round_trips;
mod secrets;
mod template_requests;
mod world;
