//! Pagination: tokens, page sizes and their limits, alike for both APIs.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{ApiError, Settings, Tree};

/// Which page was asked for.
pub(crate) struct Page {
    size: usize,
    after: Option<String>,
}

impl Page {
    /// Reads `MaxRecords` and `NextToken` of an Auto Scaling describe.
    pub(crate) fn records(params: &Tree, default: usize, max: usize) -> Result<Self, ApiError> {
        let asked = size(params, "MaxRecords", default, 1, max)
            .ok_or_else(|| ApiError::validation(format!("MaxRecords must be between 1 and {max}")))?;
        let after = token(params)
            .map_err(|()| ApiError::refused("InvalidNextToken", "The NextToken value is not valid."))?;
        Ok(Self { size: asked, after })
    }

    /// Reads `MaxResults` and `NextToken` of an EC2 describe.
    pub(crate) fn results(params: &Tree, least: usize, max: usize) -> Result<Self, ApiError> {
        let asked = size(params, "MaxResults", max, least, max).ok_or_else(|| {
            ApiError::refused(
                "InvalidParameterValue",
                format!("Value ( {} ) for parameter maxResults is invalid. Expecting a value between {least} and {max}.",
                    params.text_of("MaxResults").unwrap_or_default()),
            )
        })?;
        let after = token(params)
            .map_err(|()| ApiError::refused("InvalidParameterValue", "Unable to parse pagination token"))?;
        Ok(Self { size: asked, after })
    }

    /// Cuts the page out of entries sorted by key and puts it, and the token of the next one, into a reply.
    pub(crate) fn reply(&self, settings: &Settings, name: &str, entries: Vec<(String, Tree)>) -> Tree {
        let size = settings.page_limit.map_or(self.size, |limit| limit.clamp(1, self.size));
        let start = self.after.as_ref().map_or(0, |after| entries.partition_point(|(key, _)| key <= after));
        let more = entries.len() > start + size;
        let mut last = None;
        let items: Vec<Tree> = entries
            .into_iter()
            .skip(start)
            .take(size)
            .map(|(key, tree)| {
                last = Some(key);
                tree
            })
            .collect();
        let next = last.filter(|_| more).map(|key| URL_SAFE_NO_PAD.encode(key));
        Tree::new().with(name, items).with_opt("NextToken", next)
    }
}

fn size(params: &Tree, name: &str, default: usize, least: usize, max: usize) -> Option<usize> {
    match params.number_of(name) {
        None => Some(default),
        Some(asked) => usize::try_from(asked).ok().filter(|asked| (least..=max).contains(asked)),
    }
}

fn token(params: &Tree) -> Result<Option<String>, ()> {
    params
        .text_of("NextToken")
        .map(|token| {
            URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(())
        })
        .transpose()
}
