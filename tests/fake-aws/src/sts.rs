//! Who the caller is: the account that the access key names.

use crate::{ApiError, Tree, ec2::templates::caller, region::View};

#[expect(clippy::unnecessary_wraps, reason = "every operation has this signature")]
pub(crate) fn caller_identity(view: &View<'_>, _params: &Tree) -> Result<Tree, ApiError> {
    Ok(Tree::new()
        .with("UserId", "AIDASIMULATED00000000")
        .with("Account", &view.scope.account)
        .with("Arn", caller(view.scope)))
}
