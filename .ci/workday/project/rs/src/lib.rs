/// Greets name.
pub fn greeting(name: &str) -> String {
    day_mark::mark(&format!("{} {}", day_words::HELLO, name))
}

#[test]
fn greets() {
    assert_eq!(greeting("day"), "[hello day]");
}
