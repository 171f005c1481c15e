pub fn mark(text: &str) -> String {
    format!("[{}]", text)
}
