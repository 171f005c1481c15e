"""Looks at everything in the packages of VS Code's extension. Started by .ci/packages.
usage: vsix.py FOLDER PATH...   FOLDER has a package for each platform; no PATH may stand in any file of them.
"""
import json
import pathlib
import re
import stat
import sys
import zipfile

# How a program for each platform begins: format and processor.
MAGIC = {
    "linux-x64": (b"\x7fELF\x02\x01", 18, b"\x3e\x00"),
    "linux-arm64": (b"\x7fELF\x02\x01", 18, b"\xb7\x00"),
    "darwin-x64": (b"\xcf\xfa\xed\xfe", 4, b"\x07\x00\x00\x01"),
    "darwin-arm64": (b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01"),
    "win32-x64": (b"MZ", None, b""),
}
FILES = """
[Content_Types].xml
extension.vsixmanifest
extension/LICENSE.txt
extension/changelog.md
extension/dist/extension.js
extension/dist/question.js
extension/dist/style.css
extension/media/icon.png
extension/media/icon.svg
extension/media/panel.svg
extension/media/vscode-panel-dark.png
extension/media/vscode-panel-light.png
extension/media/vscode-question-dark.png
extension/media/vscode-question-light.png
extension/media/vscode-status-dark.png
extension/media/vscode-status-light.png
extension/package.json
extension/readme.md
""".split()
MOST = 12 << 20  # bytes of a package


def look(path, forbidden):
    platform = re.fullmatch(r"confine-(\w+-\w+)-[\d.]+\.vsix", path.name)[1]
    program = "extension/bin/confine" + (".exe" if platform.startswith("win32") else "")
    wrong = []
    if path.stat().st_size > MOST:
        wrong.append(f"it has {path.stat().st_size} bytes, more than {MOST}")
    with zipfile.ZipFile(path) as package:
        names = sorted(package.namelist())
        expected = sorted(FILES + [program])
        wrong += [f"not expected: {n}" for n in names if n not in expected]
        wrong += [f"missing: {n}" for n in expected if n not in names]
        if wrong:
            return wrong
        for info in package.infolist():
            data = package.read(info)
            wrong += [f"{info.filename} holds the path {f}" for f in forbidden if f.encode() in data]
            if info.filename.endswith((".js", ".css")) and b"sourceMappingURL" in data:
                wrong.append(f"{info.filename} refers to a source map")
            executable = bool((info.external_attr >> 16) & stat.S_IXUSR)
            if executable != (info.filename == program):
                wrong.append(f"{info.filename} is {'' if executable else 'not '}executable")
        begin, at, processor = MAGIC[platform]
        data = package.read(program)
        if not data.startswith(begin) or (at is not None and data[at : at + len(processor)] != processor):
            wrong.append(f"the program is none for {platform}")
        if f'TargetPlatform="{platform}"' not in package.read("extension.vsixmanifest").decode():
            wrong.append("the manifest names another platform")
        manifest = json.loads(package.read("extension/package.json"))
        wrong += [f"package.json has {key}" for key in ("scripts", "devDependencies", "private") if key in manifest]
        readme = package.read("extension/readme.md").decode()
        wrong += [f"readme: a link that leads nowhere outside a checkout: {link}" for link in re.findall(r"\]\(([^)]*)\)", readme) if not re.match(r"https://|#", link)]
    return wrong


def main():
    folder, *forbidden = sys.argv[1:]
    forbidden = [f for f in forbidden if len(f) > 1]
    packages = sorted(pathlib.Path(folder).glob("*.vsix"))
    found = {re.sub(r"^confine-|-[\d.]+\.vsix$", "", p.name) for p in packages}
    failed = found != set(MAGIC)
    if failed:
        print(f"packages are for {sorted(found)}, expected {sorted(MAGIC)}")
    for path in packages:
        wrong = look(path, forbidden)
        failed |= bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {path.name}, {path.stat().st_size >> 10} KiB" + "".join(f"\n     {w}" for w in wrong))
    sys.exit(failed)


main()
