//! The rules of the contract, shown on the real parts: one module a letter, one test a rule.
//!
//! All tests share one environment and run at the same time, each in a namespace and a region of its own.

mod a_definitions;
mod admission;
mod adoption;
mod at_rest;
mod b_contract;
mod c_ownership;
mod d14_d15_going;
mod d_machines;
mod drain;
mod drift;
mod e_deletion;
mod ends;
mod events;
mod f_pause;
mod g_replicas;
mod generated;
mod h3_rolling;
mod h_bootstrap;
mod h_tokens;
mod h_user_data;
mod i_conditions;
mod instance_refresh;
mod j_clusterclass;
mod j_describe;
mod j_dry_run;
mod j_on_aws;
mod j_stable;
mod j_upgrade;
mod k_flavors;
mod kill;
mod kube_writes;
mod launch_failure;
mod m_busy;
mod m_move;
mod m_topology;
mod n_manager;
mod odd;
mod r_extension;
mod reconciled;
mod record;
mod upgrade;
mod webhooks;
mod whole;
mod x_addons;
