//! What the doctor finds.

use serde::Serialize;

use crate::table::{Align, Table};

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As it should be.
    Fine,
    /// Works, but not as well as it could.
    Limit,
    /// Does not work.
    Fails,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The interface that it is about; `None`: the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface: Option<String>,
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { interface: None, check, verdict: Verdict::Fine, found: found.into(), remedy: None }
    }

    pub(crate) fn limit(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Limit, remedy: Some(remedy.into()), ..Self::fine(check, found) }
    }

    pub(crate) fn fails(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fails, remedy: Some(remedy.into()), ..Self::fine(check, found) }
    }

    /// It is about this interface.
    pub(crate) fn about(mut self, interface: &str) -> Self {
        self.interface = Some(interface.to_owned());
        self
    }

    fn text(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; remedy: {remedy}", self.found),
            None => self.found.clone(),
        }
    }
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Limit => "limit",
            Self::Fails => "fails",
        }
    }
}

/// One line for each.
pub(crate) fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new([("", Align::Left); 4]);
    for finding in findings {
        let about = finding.interface.clone().unwrap_or_else(|| "host".to_owned());
        table.row([finding.verdict.word().to_owned(), about, finding.check.to_owned(), finding.text()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_each_with_the_remedy() {
        let findings = [
            Finding::fine("kernel", "6.18"),
            Finding::limit("path MTU", "1024", "`ip link set eth0 mtu 4200`").about("eth0"),
        ];
        let text = table(&findings).to_string();
        assert_eq!(
            text,
            "fine   host  kernel    6.18\nlimit  eth0  path MTU  1024; remedy: `ip link set eth0 mtu 4200`"
        );
    }
}
