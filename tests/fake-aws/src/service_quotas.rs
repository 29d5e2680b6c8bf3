//! Service Quotas: the quotas of EC2 for vCPUs of Standard instances.

use crate::{
    ApiError, Tree,
    region::{View, arn},
};

/// Without a limit: more than any test launches.
const UNLIMITED: u32 = 100_000;

/// `GetServiceQuota`.
pub(crate) fn get(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let service = params.text_of("ServiceCode").unwrap_or_default();
    let code = params.text_of("QuotaCode").unwrap_or_default();
    let (name, class) = match (service, code) {
        ("ec2", "L-1216C47A") => {
            ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "Standard/OnDemand")
        }
        ("ec2", "L-34B43A08") => {
            ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "Standard/Spot")
        }
        _ => {
            let words = "The request failed because the specified quota does not exist.";
            return Err(ApiError::refused("NoSuchResourceException", words));
        }
    };
    let dimensions = Tree::new()
        .with("Class", class)
        .with("Resource", "vCPU")
        .with("Service", "EC2")
        .with("Type", "Resource");
    let metric = Tree::new()
        .with("MetricNamespace", "AWS/Usage")
        .with("MetricName", "ResourceCount")
        .with("MetricDimensions", dimensions)
        .with("MetricStatisticRecommendation", "Maximum");
    let quota = Tree::new()
        .with("ServiceCode", service)
        .with("ServiceName", "Amazon Elastic Compute Cloud (Amazon EC2)")
        .with("QuotaArn", arn(view.scope, "servicequotas", &format!("{service}/{code}")))
        .with("QuotaCode", code)
        .with("QuotaName", name)
        .with("Value", format!("{}.0", view.settings.vcpu_limit.unwrap_or(UNLIMITED)))
        .with("Unit", "None")
        .with("Adjustable", true)
        .with("GlobalQuota", false)
        .with("UsageMetric", metric)
        .with("QuotaAppliedAtLevel", "ACCOUNT");
    Ok(Tree::new().with("Quota", quota))
}
