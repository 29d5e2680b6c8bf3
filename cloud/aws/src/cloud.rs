//! The cloud port over the SDK's clients of one region.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use aws_config::SdkConfig;
use capasg_cloud::{
    Cloud, Group, Image, InstanceFacts, InstanceRefresh, InstanceType, LaunchTemplate, LaunchTemplateVersion,
    LifecycleHook, Page, Result, RunningInstance, ScalingActivity, SecurityGroup, Selector, Subnet,
    SubnetAddresses, TypeOffering, Write, WriteReply,
};

use crate::{
    assumed::Kept,
    autoscaling::{activities, capacity, groups, hooks, processes, refreshes, tags},
    ec2::{
        images, instance_types, instances, network, offerings,
        templates::{self, NewVersion},
    },
    identity, quotas,
};

/// One account and region of AWS.
pub(crate) struct AwsCloud {
    autoscaling: aws_sdk_autoscaling::Client,
    ec2: aws_sdk_ec2::Client,
    quotas: aws_sdk_servicequotas::Client,
    ssm: aws_sdk_ssm::Client,
    sts: aws_sdk_sts::Client,
    kept: Option<Arc<Kept>>,
}

impl AwsCloud {
    /// Clients that share the configuration's HTTP client and credentials cache.
    pub(crate) fn new(config: &SdkConfig, kept: Option<Arc<Kept>>) -> Self {
        Self {
            autoscaling: aws_sdk_autoscaling::Client::new(config),
            ec2: aws_sdk_ec2::Client::new(config),
            quotas: aws_sdk_servicequotas::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
            kept,
        }
    }
}

impl fmt::Debug for AwsCloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsCloud").finish_non_exhaustive()
    }
}

#[async_trait]
impl Cloud for AwsCloud {
    fn reject_credentials(&self) {
        if let Some(kept) = &self.kept {
            kept.reject();
        }
    }

    async fn account(&self) -> Result<String> {
        identity::account(&self.sts).await
    }

    async fn write(&self, write: &Write) -> Result<WriteReply> {
        let (api, ec2, client) = (write.api(), &self.ec2, &self.autoscaling);
        match write {
            Write::CreateLaunchTemplate { name, data, description, tags, client_token } => {
                let version = NewVersion { data, description, client_token };
                templates::create(ec2, api, name, version, tags).await
            }
            Write::CreateLaunchTemplateVersion { id, data, description, client_token } => {
                let version = NewVersion { data, description, client_token };
                templates::create_version(ec2, api, id, version).await
            }
            Write::DeleteLaunchTemplateVersions { id, versions } => {
                templates::delete_versions(ec2, api, id, versions).await
            }
            Write::DeleteLaunchTemplate { id } => templates::delete(ec2, api, id).await,
            Write::CreateGroup(create) => groups::create(client, api, create).await,
            Write::UpdateGroup { group, change } => groups::update(client, api, group, change).await,
            Write::SetDesiredCapacity { group, desired } => {
                capacity::set_desired(client, api, group, *desired).await
            }
            Write::TerminateInstances { group, instances, decrement } => {
                capacity::terminate(client, api, group, instances, *decrement).await
            }
            Write::SetInstanceProtection { group, instances, protected } => {
                capacity::protect(client, api, group, instances, *protected).await
            }
            Write::SuspendProcesses { group, processes } => {
                processes::suspend(client, api, group, processes).await
            }
            Write::ResumeProcesses { group, processes } => {
                processes::resume(client, api, group, processes).await
            }
            Write::StartInstanceRefresh(start) => refreshes::start(client, api, start).await,
            Write::CancelInstanceRefresh { group } => refreshes::cancel(client, api, group).await,
            Write::RollbackInstanceRefresh { group } => refreshes::roll_back(client, api, group).await,
            Write::PutLifecycleHook { group, hook } => hooks::put(client, api, group, hook).await,
            Write::DeleteLifecycleHook { group, hook } => hooks::delete(client, api, group, hook).await,
            Write::CompleteLifecycleAction { group, hook, instance } => {
                hooks::complete(client, api, group, hook, instance).await
            }
            Write::RecordLifecycleActionHeartbeat { group, hook, instance } => {
                hooks::heartbeat(client, api, group, hook, instance).await
            }
            Write::TagGroup { group, tags: wanted } => {
                tags::create_or_update(client, api, group, wanted).await
            }
            Write::UntagGroup { group, keys } => tags::delete(client, api, group, keys).await,
            Write::DeleteGroup { group, force } => groups::delete(client, api, group, *force).await,
        }
    }

    async fn groups(&self, names: &[String], token: Option<String>) -> Result<Page<Group>> {
        groups::describe(&self.autoscaling, names, token).await
    }

    async fn lifecycle_hooks(&self, group: &str) -> Result<Vec<LifecycleHook>> {
        hooks::describe(&self.autoscaling, group).await
    }

    async fn scaling_activities(&self, group: &str, token: Option<String>) -> Result<Page<ScalingActivity>> {
        activities::describe(&self.autoscaling, group, token).await
    }

    async fn instance_refreshes(&self, group: &str, token: Option<String>) -> Result<Page<InstanceRefresh>> {
        refreshes::describe(&self.autoscaling, group, token).await
    }

    async fn instances(&self, ids: &[String], token: Option<String>) -> Result<Page<InstanceFacts>> {
        instances::describe(&self.ec2, ids, token).await
    }

    async fn instance_types(&self, names: &[String], token: Option<String>) -> Result<Page<InstanceType>> {
        instance_types::describe(&self.ec2, names, token).await
    }

    async fn launch_template(&self, name: &str) -> Result<Option<LaunchTemplate>> {
        templates::describe(&self.ec2, name).await
    }

    async fn launch_templates(&self, tag_key: &str, token: Option<String>) -> Result<Page<LaunchTemplate>> {
        templates::list(&self.ec2, tag_key, token).await
    }

    async fn latest_versions(&self, token: Option<String>) -> Result<Page<(String, LaunchTemplateVersion)>> {
        templates::latest_versions(&self.ec2, token).await
    }

    async fn launch_template_versions(
        &self,
        id: &str,
        token: Option<String>,
    ) -> Result<Page<LaunchTemplateVersion>> {
        templates::describe_versions(&self.ec2, id, token).await
    }

    async fn subnets(&self, selector: &Selector, token: Option<String>) -> Result<Page<Subnet>> {
        network::subnets(&self.ec2, selector, token).await
    }

    async fn security_groups(
        &self,
        selector: &Selector,
        token: Option<String>,
    ) -> Result<Page<SecurityGroup>> {
        network::security_groups(&self.ec2, selector, token).await
    }

    async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool> {
        network::is_associated(&self.ec2, security_group, vpc).await
    }

    async fn image(&self, id: &str) -> Result<Option<Image>> {
        images::image(&self.ec2, id).await
    }

    async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>> {
        images::snapshot_gib(&self.ec2, id).await
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>> {
        images::parameter(&self.ssm, name).await
    }

    async fn type_offerings(&self, names: &[String], token: Option<String>) -> Result<Page<TypeOffering>> {
        offerings::types(&self.ec2, names, token).await
    }

    async fn subnet_addresses(
        &self,
        selector: &Selector,
        token: Option<String>,
    ) -> Result<Page<SubnetAddresses>> {
        network::addresses(&self.ec2, selector, token).await
    }

    async fn running_instances(&self, token: Option<String>) -> Result<Page<RunningInstance>> {
        instances::running(&self.ec2, token).await
    }

    async fn ec2_quota(&self, code: &str) -> Result<i64> {
        quotas::of_ec2(&self.quotas, code).await
    }
}
