//! Where the API is: `http://HOST[:PORT]/PATH`, `https://...`, `[http://]unix:/SOCKET[:/PATH]`.

use std::fmt;
use std::path::PathBuf;

use base64::prelude::{Engine, BASE64_STANDARD};
use percent_encoding::{percent_decode_str, utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use ureq::http::Uri;

/// All but the characters that a URL never needs to encode.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where to ask.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// Of the location, without a slash at its end.
    base: String,
    /// The socket, if it is a unix one. `base` then begins with http://localhost.
    pub socket: Option<PathBuf>,
    /// Value of the header Authorization.
    pub authorization: Option<String>,
    /// Whether certificates matter.
    pub tls: bool,
}

impl Target {
    /// Reads a URL. The message says what is wrong with it, and never repeats a password.
    pub fn parse(url: &str) -> Result<Target, String> {
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => (String::new(), url),
        };
        match (scheme.as_str(), strip_prefix(rest, "unix:")) {
            ("" | "http", Some(rest)) => Self::unix(rest),
            ("https", Some(_)) => Err("TLS over a unix socket is not supported".to_owned()),
            ("http" | "https", None) => Self::tcp(&scheme, rest),
            _ => Err("it has to begin with http://, https:// or unix:".to_owned()),
        }
    }

    fn unix(rest: &str) -> Result<Target, String> {
        let (socket, path) = rest.split_once(':').unwrap_or((rest, ""));
        if socket.is_empty() {
            return Err("the path of the unix socket is missing".to_owned());
        }
        if !path.is_empty() && !path.starts_with('/') {
            return Err("what follows the unix socket has to begin with \"/\"".to_owned());
        }
        Ok(Target {
            base: checked(&format!("http://localhost{path}"))?,
            socket: Some(PathBuf::from(socket)),
            authorization: None,
            tls: false,
        })
    }

    fn tcp(scheme: &str, rest: &str) -> Result<Target, String> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if host.is_empty() || host.starts_with(':') {
            return Err("the host is missing".to_owned());
        }
        Ok(Target {
            base: checked(&format!("{scheme}://{host}{path}"))?,
            socket: None,
            authorization: user.map(basic),
            tls: scheme == "https",
        })
    }

    /// The URL of what is below the location.
    pub fn below(&self, segments: &[&str]) -> String {
        let mut url = self.base.clone();
        for segment in segments {
            url.push('/');
            url.extend(utf8_percent_encode(segment, SEGMENT));
        }
        url
    }
}

/// As in messages: without user and password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(socket) => {
                let path = self.base.strip_prefix("http://localhost");
                write!(f, "unix:{}:{}/", socket.display(), path.unwrap_or_default())
            }
            None => write!(f, "{}/", self.base),
        }
    }
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `base` without slashes at its end, if requests can be sent below it.
fn checked(base: &str) -> Result<String, String> {
    if base.contains(['?', '#']) {
        return Err("it is the URL of a location, without \"?\" and \"#\"".to_owned());
    }
    let uri: Uri = base.parse().map_err(|error| format!("{error}"))?;
    // A port that is no number is not found before it is asked for.
    let authority = uri.authority().map_or("", |it| it.as_str());
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    if port.is_some_and(|port| !port.ends_with(']') && port.parse::<u16>().is_err()) {
        return Err("invalid port".to_owned());
    }
    Ok(base.trim_end_matches('/').to_owned())
}

fn basic(user: &str) -> String {
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let mut both: Vec<u8> = percent_decode_str(user).collect();
    both.push(b':');
    both.extend(percent_decode_str(password));
    format!("Basic {}", BASE64_STANDARD.encode(both))
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn urls_of_tcp() {
        for (url, base) in [
            ("http://127.0.0.1:8080/api/", "http://127.0.0.1:8080/api"),
            ("http://127.0.0.1:8080/api", "http://127.0.0.1:8080/api"),
            ("HTTP://host", "http://host"),
            ("http://host/", "http://host"),
            ("https://host/a/b//", "https://host/a/b"),
            ("http://[::1]:81/api", "http://[::1]:81/api"),
            ("http://[::1]/api", "http://[::1]/api"),
        ] {
            let target = Target::parse(url);
            assert_eq!(
                target,
                Ok(Target {
                    base: base.to_owned(),
                    socket: None,
                    authorization: None,
                    tls: base.starts_with("https"),
                }),
                "{url}"
            );
            let shown = target.map(|target| target.to_string());
            assert_eq!(shown, Ok(format!("{base}/")), "{url}");
        }
    }

    #[test]
    fn urls_of_unix_sockets() {
        for (url, socket, below) in [
            ("unix:/run/nginx.sock:/api/", "/run/nginx.sock", "/api/x"),
            ("unix:/run/nginx.sock:/api", "/run/nginx.sock", "/api/x"),
            ("http://unix:/run/s:/api/", "/run/s", "/api/x"),
            ("UNIX:/run/s", "/run/s", "/x"),
            ("unix:/run/s:", "/run/s", "/x"),
            ("unix:relative:/", "relative", "/x"),
        ] {
            let target = Target::parse(url).map(|target| {
                (
                    target.socket.as_ref().map(|it| it.display().to_string()),
                    target.below(&["x"]),
                    target.authorization,
                )
            });
            let expected = (
                Some(socket.to_owned()),
                format!("http://localhost{below}"),
                None,
            );
            assert_eq!(target, Ok(expected), "{url}");
        }
    }

    #[test]
    fn urls_that_are_none() {
        for (url, why) in [
            (
                "127.0.0.1:8080/api",
                "it has to begin with http://, https:// or unix:",
            ),
            ("", "it has to begin with http://, https:// or unix:"),
            (
                "ftp://h/",
                "it has to begin with http://, https:// or unix:",
            ),
            ("http://", "the host is missing"),
            ("http:///api", "the host is missing"),
            ("http://:80/api", "the host is missing"),
            ("http://u@/api", "the host is missing"),
            ("http://h:port/", "invalid port"),
            ("http://h:65536/", "invalid port"),
            ("http://h:/", "invalid port"),
            ("http://h/a b", "invalid uri character"),
            (
                "http://h/api?format=json",
                "it is the URL of a location, without \"?\" and \"#\"",
            ),
            ("unix:", "the path of the unix socket is missing"),
            ("unix::/api", "the path of the unix socket is missing"),
            (
                "unix:/s:api",
                "what follows the unix socket has to begin with \"/\"",
            ),
            (
                "https://unix:/s:/api",
                "TLS over a unix socket is not supported",
            ),
        ] {
            assert_eq!(Target::parse(url), Err(why.to_owned()), "{url}");
        }
    }

    #[test]
    fn user_and_password_go_into_a_header_and_nowhere_else() {
        for (url, header) in [
            ("http://martin:secret@h/api", "Basic bWFydGluOnNlY3JldA=="),
            ("http://martin@h/api", "Basic bWFydGluOg=="),
            // a@b : c/d
            ("http://a%40b:c%2Fd@h/api", "Basic YUBiOmMvZA=="),
        ] {
            let target = Target::parse(url);
            let shown = target.as_ref().map(ToString::to_string);
            assert_eq!(shown, Ok("http://h/api/".to_owned()), "{url}");
            let sent = target.map(|it| it.authorization);
            assert_eq!(sent, Ok(Some(header.to_owned())), "{url}");
        }
    }

    #[test]
    fn names_are_encoded() {
        let below = |segments: &[&str]| Target::parse("http://h/").map(|it| it.below(segments));
        for (segments, url) in [
            (&["upstrands", "a b"][..], "http://h/upstrands/a%20b"),
            (&["app[__1]_80"], "http://h/app%5B__1%5D_80"),
            (&["unix_/run/app.sock"], "http://h/unix_%2Frun%2Fapp.sock"),
            (&["a?b#c%d"], "http://h/a%3Fb%23c%25d"),
            (&["é"], "http://h/%C3%A9"),
            (&["a-b._~"], "http://h/a-b._~"),
        ] {
            assert_eq!(below(segments), Ok(url.to_owned()));
        }
    }
}
