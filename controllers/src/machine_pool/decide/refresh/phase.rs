//! Where a rollout by AWS stands, for conditions and `status.rollout`.

use capasg_api::pool::{OnRefreshFailure, Opening, RolloutType};
use capasg_cloud::RefreshStatus;

use super::super::super::state::{Case, RolloutPhase};
use super::super::rollout::Outdated;
use super::{Refresh, Standing, Unwanted};

/// What AWS puts before an instance that it names for many.
const EXAMPLE: &str = "For example";

impl Unwanted {
    fn in_words(&self) -> &'static str {
        match self {
            Self::Budget => {
                "it replaces more at once than spec.disruption allows, so it is cancelled; another follows"
            }
            _ => "it is for an earlier spec, so it is cancelled; another follows",
        }
    }
}

/// AWS's words without the instance that they take for an example: that is another at each look, and a status that
/// changes with each look would wake everybody who watches it.
fn steady(words: &str) -> Option<String> {
    let steady = words.split(EXAMPLE).next().unwrap_or_default().trim();
    (!steady.is_empty()).then(|| steady.to_owned())
}

impl Refresh<'_> {
    /// Where the rollout stands, for conditions; `None` if there is none of AWS's.
    #[must_use]
    pub fn phase(&self, case: &Case<'_>, outdated: &Outdated) -> Option<RolloutPhase> {
        let leaving = case.observed.members.iter().filter(|(id, m)| {
            let ending = m.lifecycle().is_some_and(capasg_cloud::LifecycleState::is_terminating);
            m.is_leaving() && (ending || outdated.is_outdated(id))
        });
        let draining: Vec<String> =
            leaving.filter_map(|(_, m)| Some(m.machine.as_ref()?.name.clone())).collect();
        Some(match &self.standing {
            Standing::Idle => return None,
            Standing::Active
            | Standing::TakenBack
            | Standing::Unwanted(Unwanted::Obsolete | Unwanted::Budget) => {
                let refresh = self.active?;
                let one_way = case.desired.rollout.type_ == RolloutType::InstanceRefresh
                    && case.desired.refresh.on_failure == OnRefreshFailure::RollBack
                    && refresh.desired.is_none();
                let words = refresh.reason.as_ref().or(refresh.rollback_reason.as_ref());
                RolloutPhase::Refreshing {
                    status: refresh.status.as_str().to_owned(),
                    percentage: refresh.percentage,
                    words: words.and_then(|words| steady(words)),
                    draining,
                    unwanted: match &self.standing {
                        Standing::Unwanted(why) => Some(why.in_words()),
                        _ => None,
                    },
                    one_way,
                }
            }
            Standing::Start | Standing::Asked => RolloutPhase::Refreshing {
                status: RefreshStatus::Pending.as_str().to_owned(),
                percentage: None,
                words: None,
                draining,
                unwanted: None,
                one_way: case.desired.rotates
                    && case.desired.refresh.on_failure == OnRefreshFailure::RollBack,
            },
            Standing::Unread | Standing::Held | Standing::OutOfBudget => RolloutPhase::Held,
            Standing::Settling(_) => RolloutPhase::Settling,
            Standing::Refused => RolloutPhase::Refused,
            Standing::Paused | Standing::Unwanted(Unwanted::Paused) => RolloutPhase::Paused { draining },
            Standing::Closed(opening) | Standing::Unwanted(Unwanted::Closed(opening)) => {
                let next = match opening {
                    Opening::Closed { next } => *next,
                    _ => None,
                };
                RolloutPhase::Closed { draining, next }
            }
            Standing::Stopped(end) => RolloutPhase::Stopped { draining, refresh: end.clone() },
            Standing::Failed(end) => RolloutPhase::Stopped { draining, refresh: Some(end.clone()) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i4_words_do_not_change_with_the_instance_that_aws_takes_for_an_example() {
        let of = |id: &str| {
            steady(&format!(
                "Waiting for instances to warm up before continuing. For example: {id} is warming up."
            ))
        };
        assert_eq!(of("i-0645704820a8e83ff"), of("0e69cc3f05f825f4f"));
        assert_eq!(of("i-1").unwrap(), "Waiting for instances to warm up before continuing.");
        assert_eq!(steady("Cancelled due to user request.").unwrap(), "Cancelled due to user request.");
        assert_eq!(steady("For example: i-1 is not InService."), None);
    }
}
