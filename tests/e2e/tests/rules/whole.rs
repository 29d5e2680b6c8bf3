//! One pool from nothing to nothing, with kubeadm's own bootstrap data.

use anyhow::Result;
use capasg_e2e::{Setup, rule};

#[tokio::test]
async fn a_pool_is_created_and_deleted_with_kubeadm() -> Result<()> {
    rule("whole-story", Setup::in_memory(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        rig.delete("workers").await
    })
    .await
}
