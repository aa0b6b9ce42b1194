//! The commands.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::CommandFactory;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};

use crate::api::{Explanation, Upstrand, Upstrands, Upstream};
use crate::cli::{Cli, Command, Member, Options};
use crate::client::{Answer, Client};
use crate::failure::{Failure, UNUSABLE, WELL};
use crate::terminal;
use crate::text::{escaped_json, span};
use crate::url::Target;
use crate::view;

/// Does what the command line says. Nothing is left to do but to end with the code.
pub fn run(cli: &Cli) -> ExitCode {
    let code = run_command(cli).unwrap_or_else(|failure| {
        terminal::complain(failure.text());
        let document = match &failure {
            Failure::Refused { document, .. } if cli.options.json => escaped_json(document),
            _ => String::new(),
        };
        // That it was refused is worse news than a standard output that is full.
        let _ = terminal::print(&document);
        failure.code()
    });
    ExitCode::from(code)
}

fn run_command(cli: &Cli) -> Result<u8, Failure> {
    if let Command::Completion { shell } = &cli.command {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "upstrandctl", &mut script);
        terminal::print(&String::from_utf8_lossy(&script))?;
        return Ok(WELL);
    }

    let session = Session::new(&cli.options)?;
    let (member, change) = match &cli.command {
        Command::Completion { .. } => return Ok(WELL),
        Command::Status { name } => {
            let (text, code) = session.status(name.as_deref())?;
            terminal::print(&text)?;
            return Ok(code);
        }
        Command::Watch { name, interval } => return session.watch(name.as_deref(), *interval),
        Command::Explain { name } => {
            let answer: Answer<Explanation> =
                session.client.get(&["upstrands", name, "explain"])?;
            let show = |_, it: &Explanation| view::explanation(it, session.colours);
            terminal::print(&session.shown(&answer, show))?;
            return Ok(WELL);
        }
        Command::Drain { member, force } => {
            let mut change = json!({"drain": true});
            if *force {
                change = json!({"drain": true, "force": true});
            }
            (member, change)
        }
        Command::Undrain { member } => (member, json!({"drain": false})),
        Command::Blacklist { member, time } => (member, json!({"blacklist": time})),
        Command::Unblacklist { member } => (member, json!({"blacklist": null})),
    };
    session.change(member, &change)?;
    Ok(WELL)
}

struct Session {
    client: Client,
    json: bool,
    colours: bool,
}

impl Session {
    fn new(options: &Options) -> Result<Session, Failure> {
        let url = options.url.as_deref().filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| {
            Failure::Usage(
                "where is upstrand_api? Give --url URL or set UPSTRAND_URL, to \
                 http://127.0.0.1/api/ or unix:/run/nginx.sock:/api/ for example"
                    .to_owned(),
            )
        })?;
        let target = Target::parse(url)
            .map_err(|why| Failure::Usage(format!("invalid URL of upstrand_api: {why}")))?;
        Ok(Session {
            client: Client::new(target, &options.header, options.timeout)?,
            json: options.json,
            colours: terminal::colours(),
        })
    }

    /// What was asked for: the answer as it came, or as `show` has it.
    fn shown<T>(&self, answer: &Answer<T>, show: impl Fn(i64, &T) -> String) -> String {
        if self.json {
            escaped_json(&answer.text)
        } else {
            show(answer.time, &answer.document)
        }
    }

    fn get<T: DeserializeOwned>(&self, name: Option<&str>) -> Result<Answer<T>, Failure> {
        let mut path = vec!["upstrands"];
        path.extend(name);
        self.client.get(&path)
    }

    /// The text to print and the exit code.
    fn status(&self, name: Option<&str>) -> Result<(String, u8), Failure> {
        let (text, usable) = match name {
            Some(name) => {
                let answer: Answer<Upstrand> = self.get(Some(name))?;
                let show = |time, it: &Upstrand| {
                    view::status(std::iter::once((name, it)), time, self.colours)
                };
                (self.shown(&answer, show), answer.document.usable())
            }
            None => {
                let answer: Answer<Upstrands> = self.get(None)?;
                let show = |time, all: &Upstrands| {
                    let all = all.iter().map(|(name, it)| (name.as_str(), it));
                    view::status(all, time, self.colours)
                };
                let usable = answer.document.values().all(Upstrand::usable);
                (self.shown(&answer, show), usable)
            }
        };
        Ok((text, if usable { WELL } else { UNUSABLE }))
    }

    /// Ends when nobody reads any more, or at once if the first answer is none. After that failures
    /// are shown like answers: nginx may be back the next time.
    fn watch(&self, name: Option<&str>, interval: Duration) -> Result<u8, Failure> {
        let screen = terminal::is_terminal() && !self.json;
        let (mut text, _) = self.status(name)?;
        let mut first = true;
        loop {
            let read = if screen {
                if std::mem::take(&mut first) {
                    terminal::print("\x1b[2J")?;
                }
                let title = format!("{}  every {}", self.client.target, span(interval));
                terminal::redraw(&format!("{title}\n\n{text}"))?
            } else {
                // An empty line stands between one and the next.
                let gap = if std::mem::take(&mut first) || self.json {
                    ""
                } else {
                    "\n"
                };
                terminal::print(&format!("{gap}{text}"))?
            };
            if !read {
                return Ok(WELL);
            }
            thread::sleep(interval);
            text = match self.status(name) {
                Ok((text, _)) => text,
                Err(failure) if screen => format!("{}\n", failure.text()),
                Err(failure) => {
                    terminal::complain(failure.text());
                    String::new()
                }
            };
        }
    }

    fn change(&self, member: &Member, change: &Value) -> Result<(), Failure> {
        let path = ["upstrands", &member.name, "upstreams", &member.upstream];
        let answer: Answer<Upstream> = self.client.patch(&path, change)?;
        let show = |time, it: &Upstream| view::changed(&member.name, it, time, self.colours);
        terminal::print(&self.shown(&answer, show))?;
        Ok(())
    }
}
