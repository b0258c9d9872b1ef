//! Every error code has a page that explains it.

use servo_model::alert::AlertCode;
use servo_model::codes;

use crate::support::{read, repository};

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut pages: Vec<String> = std::fs::read_dir(repository("docs/errors"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str().unwrap().strip_suffix(".md").map(str::to_owned))
        .filter(|page| page != "README")
        .collect();
    pages.sort_unstable();
    let mut known: Vec<_> = codes::ALL.iter().map(|code| code.code).collect();
    known.sort_unstable();
    assert_eq!(pages, known);
}

#[test]
fn pages_say_code_status_and_title() {
    for code in codes::ALL {
        let page = read(&format!("docs/errors/{}.md", code.code));
        let head = format!("# {}\n\n**{}** · HTTP {}\n", code.code, code.title, code.status);
        assert!(page.starts_with(&head), "{}: {:?}", code.code, page.lines().take(3).collect::<Vec<_>>());
        assert!((5..=20).contains(&page.lines().count()), "{}", code.code);
        assert!((400..600).contains(&code.status));
    }
}

#[test]
fn alert_codes_read_back() {
    for code in AlertCode::ALL {
        assert_eq!(AlertCode::parse(code.as_str()), Some(*code));
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    assert_eq!(AlertCode::parse("NO_SUCH_ALERT"), None);
}
