//! AWS requests: routed by the credential scope, answered in the service's own format.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use chrono::Utc;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};

use super::{
    credentials::{self, Signed},
    shared::Shared,
};
use crate::{Answer, ApiError, Call, Scope, Service, Tree, protocol};

/// Bytes of a request body; user data of 16 KiB and its encodings fit many times over.
const BODY_LIMIT: usize = 1 << 20;

/// How often a receive that waits looks for a message.
const LOOK: Duration = Duration::from_millis(20);

/// Marks a response that must not be sent: the connection is closed instead.
#[derive(Clone, Copy)]
pub(super) struct Lost;

pub(super) async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let wall_time = Utc::now();
    let (parts, body) = request.into_parts();
    let signed = credentials::of(&parts.headers);
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        let service = signed.map_or(Service::AutoScaling, |signed| signed.service);
        return write(
            service,
            "",
            &failed(ApiError::new(413, "RequestEntityTooLarge", "Request body is too large")),
        );
    };
    let body = String::from_utf8_lossy(&bytes);
    let Some(signed) = signed.or_else(|| credentials::of_unsigned(&body)) else {
        let error =
            ApiError::new(403, "MissingAuthenticationToken", "Request is missing a known credential scope");
        return write(Service::AutoScaling, "", &failed(error));
    };
    let Signed { access_key, session_token, scope, service } = signed;
    let (action, params) = match read(service, &parts.headers, &body) {
        Ok(parsed) => parsed,
        Err(error) => return write(service, "", &failed(error)),
    };
    shared.pacer.catch_up(&shared.simulator);
    if action == "ReceiveMessage" {
        await_message(&shared, &scope, &params).await;
    }
    let call = Call {
        scope,
        service,
        action: action.clone(),
        params,
        access_key,
        session_token,
        wall_time: Some(wall_time),
    };
    let mut answer = shared.simulator.answer(call);
    if let (Service::Sts, Ok(reply)) = (service, &mut answer.result) {
        shared.tell_in_wall_time(reply, wall_time);
    }
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    write(service, &action, &answer)
}

/// Holds a receive back until there is a message, as long as it asks for.
async fn await_message(shared: &Shared, scope: &Scope, params: &Tree) {
    let seconds = params.number_of("WaitTimeSeconds").and_then(|seconds| u64::try_from(seconds).ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    while Instant::now() < until && !shared.simulator.has_messages(scope) {
        tokio::time::sleep(LOOK).await;
        shared.pacer.catch_up(&shared.simulator);
    }
}

fn read(service: Service, headers: &HeaderMap, body: &str) -> Result<(String, Tree), ApiError> {
    if service.speaks_json() {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
        let action = target.rsplit('.').next().unwrap_or_default().to_owned();
        return Ok((action, protocol::parse_json(body)?));
    }
    protocol::parse_query(service, body)
}

fn failed(error: ApiError) -> Answer {
    Answer {
        result: Err(error),
        delay: Duration::ZERO,
        request_id: "00000000-0000-4000-8000-000000000000".to_owned(),
    }
}

fn write(service: Service, action: &str, answer: &Answer) -> Response {
    let id = &answer.request_id;
    let json = service.speaks_json();
    let written = answer.result.clone().and_then(|tree| {
        if json {
            protocol::json_reply(service, action, &tree)
        } else {
            protocol::xml_reply(service, action, &tree, id)
        }
    });
    let (status, body, code) = match written {
        Ok(body) => (StatusCode::OK, body, None),
        Err(error) if error.is_lost() => {
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(Lost);
            return response;
        }
        Err(error) => {
            let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let body =
                if json { protocol::json_error(&error) } else { protocol::xml_error(service, &error, id) };
            (status, body, Some(error.code))
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = match service {
        Service::Sqs => "application/x-amz-json-1.0",
        Service::ServiceQuotas | Service::Ssm => "application/x-amz-json-1.1",
        _ => "text/xml;charset=UTF-8",
    };
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    if let Ok(id) = id.parse() {
        headers.insert("x-amzn-requestid", id);
    }
    if let Some(code) = code.filter(|_| json).and_then(|code| code.parse().ok()) {
        headers.insert("x-amzn-errortype", code);
    }
    response
}
