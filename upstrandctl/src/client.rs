//! One request, one answer.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::config::Config;
use ureq::http::{header, HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::api::ErrorDocument;
use crate::failure::Failure;
use crate::text::{escaped, span};
use crate::time;
use crate::unix::{NoResolver, UnixConnector};
use crate::url::Target;

/// Larger answers are refused.
const LIMIT: u64 = 64 << 20;

/// Asks one location.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    pub target: Target,
    headers: HeaderMap,
    timeout: Duration,
}

/// What came.
#[derive(Debug)]
pub struct Answer<T> {
    pub document: T,
    /// The document as it came.
    pub text: String,
    /// The server's clock, in ms since 1970; this machine's if it says none.
    pub time: i64,
}

impl Client {
    /// `headers` are lines such as `Name: value`.
    pub fn new(target: Target, headers: &[String], timeout: Duration) -> Result<Client, Failure> {
        let mut all = HeaderMap::new();
        all.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &target.authorization {
            all.insert(header::AUTHORIZATION, value(authorization)?);
        }
        let mut own = HeaderMap::new();
        for line in headers {
            let (name, text) = line
                .split_once(':')
                .ok_or_else(|| Failure::Usage(format!("invalid header \"{line}\": no \":\"")))?;
            let name: HeaderName = name
                .trim()
                .parse()
                .map_err(|_| Failure::Usage(format!("invalid name of a header: \"{name}\"")))?;
            own.append(name, value(text.trim())?);
        }
        for name in own.keys() {
            all.remove(name);
        }
        all.extend(own);

        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .proxy(None)
            .user_agent(concat!("upstrandctl/", env!("CARGO_PKG_VERSION")))
            .timeout_global(Some(timeout));
        let agent = match &target.socket {
            Some(socket) => Agent::with_parts(
                config.build(),
                UnixConnector {
                    socket: socket.clone(),
                },
                NoResolver,
            ),
            None if target.tls => config.tls_config(tls()?).build().new_agent(),
            None => config.build().new_agent(),
        };
        Ok(Client {
            agent,
            target,
            headers: all,
            timeout,
        })
    }

    /// GET of what is below the location.
    pub fn get<T: DeserializeOwned>(&self, segments: &[&str]) -> Result<Answer<T>, Failure> {
        let request = self.request(Method::GET, segments, ())?;
        self.read(self.agent.run(request))
    }

    /// PATCH of it with a JSON document.
    pub fn patch<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        change: &serde_json::Value,
    ) -> Result<Answer<T>, Failure> {
        let mut request = self.request(Method::PATCH, segments, change.to_string())?;
        request.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        self.read(self.agent.run(request))
    }

    fn request<B>(
        &self,
        method: Method,
        segments: &[&str],
        body: B,
    ) -> Result<Request<B>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.target.below(segments))
            .body(body)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    fn read<T: DeserializeOwned>(
        &self,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<Answer<T>, Failure> {
        let mut response = response.map_err(|error| self.unanswered(&error))?;
        let date = response.headers().get(header::DATE);
        // The header has whole seconds: the middle of this one is half of one off at most.
        let time = date
            .and_then(|date| time::parse_http(date.to_str().ok()?)?.checked_add(500))
            .unwrap_or_else(time::now);
        let body = response.body_mut().with_config().limit(LIMIT).read_to_vec();
        let body = body.map_err(|error| self.unanswered(&error))?;
        if !response.status().is_success() {
            return Err(match serde_json::from_slice::<ErrorDocument>(&body) {
                Ok(document) => Failure::Refused {
                    text: escaped(&document.error.text),
                    document: text(body),
                },
                Err(_) => self.stranger(&response),
            });
        }
        match serde_json::from_slice(&body) {
            Ok(document) => Ok(Answer {
                document,
                text: text(body),
                time,
            }),
            Err(_) => Err(self.stranger(&response)),
        }
    }

    fn unanswered(&self, error: &ureq::Error) -> Failure {
        let target = &self.target;
        Failure::Unanswered(match error {
            ureq::Error::Timeout(_) => {
                format!("no answer from {target} within {}", span(self.timeout))
            }
            ureq::Error::Protocol(_)
            | ureq::Error::Http(_)
            | ureq::Error::LargeResponseHeader(..) => {
                format!("{target} does not answer as HTTP has it: {error}")
            }
            ureq::Error::BodyExceedsLimit(_) => {
                format!("the answer of {target} is larger than 64 MiB")
            }
            ureq::Error::Io(error) => format!("no answer from {target}: {error}"),
            error => format!("no answer from {target}: {error}"),
        })
    }

    fn stranger(&self, response: &Response<Body>) -> Failure {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        Failure::Unanswered(escaped(&format!(
            "{} did not answer as upstrand_api does: {}, {}",
            self.target,
            response.status(),
            kind.unwrap_or("without a Content-Type"),
        )))
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| Failure::Usage("invalid value of a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// JSON is UTF-8: nothing is lost.
fn text(body: Vec<u8>) -> String {
    String::from_utf8(body)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn tls() -> Result<TlsConfig, Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map(ToString::to_string);
        return Err(Failure::Unanswered(format!(
            "no certificates to trust: {}",
            why.unwrap_or_else(|| "the system has none".to_owned())
        )));
    }
    let roots: Vec<_> = found
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
