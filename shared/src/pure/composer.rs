//! Half-typed text on the client's screen.
//!
//! The composer is the line after the last prompt mark, between two rules
//! (measured, 2.1.332). Its placeholder is drawn dim, so dim text counts as
//! nothing. This reading can only veto an act (rule W10); a screen without a
//! composer says nothing.

/// The mark that the composer's text follows.
const MARK: char = '❯';

/// Whether the screen, captured with its colours, shows text that a person typed
/// and did not send; `None` where no composer is seen.
pub fn holds_text(screen: &str) -> Option<bool> {
    let lines: Vec<String> = screen.lines().map(without_dim).collect();
    let marked = lines.iter().enumerate().rev().find_map(|(number, line)| {
        let text = line.trim_start().strip_prefix(MARK)?;
        let is_under_rule = number
            .checked_sub(1)
            .and_then(|above| lines.get(above))
            .is_some_and(|above| is_rule(above));
        is_under_rule.then_some((number, text))
    });
    let (number, text) = marked?;
    let further = lines.iter().skip(number + 1).take_while(|line| !is_rule(line));
    let is_blank = |line: &str| line.chars().all(|c| c.is_whitespace() || c == '\u{a0}');
    Some(!is_blank(text) || further.into_iter().any(|line| !is_blank(line)))
}

fn is_rule(line: &str) -> bool {
    line.trim_start().starts_with("──")
}

/// The line without escape sequences, and without what they make dim. The
/// cursor's own cell, drawn in reverse, is no text where it begins a placeholder.
fn without_dim(line: &str) -> String {
    let mut text = String::new();
    let (mut is_dim, mut is_reversed) = (false, false);
    let mut cursor_cell: Option<usize> = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            if is_dim {
                // A placeholder behind the cursor: the cell under it is its first
                // letter.
                if let Some(at) = cursor_cell.take() {
                    text.truncate(at);
                }
            } else {
                cursor_cell = is_reversed.then_some(text.len());
                text.push(c);
            }
            continue;
        }
        if rest.next_if_eq(&'[').is_none() {
            continue;
        }
        let mut parameters = String::new();
        while let Some(c) = rest.next_if(|c| !c.is_ascii_alphabetic()) {
            parameters.push(c);
        }
        if rest.next() != Some('m') {
            continue;
        }
        let mut codes = parameters.split(';');
        while let Some(code) = codes.next() {
            match code {
                "" | "0" => (is_dim, is_reversed) = (false, false),
                "2" => is_dim = true,
                "22" => is_dim = false,
                "7" => is_reversed = true,
                "27" => is_reversed = false,
                // A colour of its own: the next words are its number.
                "38" | "48" | "58" => match codes.next() {
                    Some("5") => drop(codes.next()),
                    Some("2") => drop(codes.by_ref().take(3).count()),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "\u{1b}[38;5;244m────────────────────\u{1b}[39m";

    #[test]
    fn only_what_a_person_typed_counts() {
        let cases = [
            ("❯ ", Some(false)),
            ("❯\u{a0}", Some(false)),
            ("❯ fix the te", Some(true)),
            ("\u{1b}[38;5;2m❯ \u{1b}[0mfix", Some(true)),
            ("❯ \u{1b}[2mTry \"edit <file>\"\u{1b}[0m", Some(false)),
            ("❯ \u{1b}[7mT\u{1b}[0;2mry \"edit\"\u{1b}[0m", Some(false)),
            ("❯ \u{1b}[7m \u{1b}[0m", Some(false)),
            ("❯ \n  second line", Some(true)),
            ("❯ fix\u{1b}[7m \u{1b}[0m", Some(true)),
        ];
        for (line, expected) in cases {
            let screen = format!("❯ an old prompt\n● done\n{RULE}\n{line}\n{RULE}\n  ? for shortcuts\n");
            assert_eq!(holds_text(&screen), expected, "{line:?}");
        }
        assert_eq!(holds_text("❯ an old prompt\n● done\n"), None);
        assert_eq!(holds_text(""), None);
    }
}
