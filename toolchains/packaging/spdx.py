#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spdx.py [ARCHIVE]: an SPDX 2.3 document, as JSON on stdout: library and program, the sources of both with hashes and
licences, and the libraries that they need. ARCHIVE is what the document is about, and its hash is named. The same
commit gives the same document. Exits 1 if a source names no licence."""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ["include", "port", "src"]  # what library and program are built from; tests and examples are not
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".lua"}
LICENCE = "MIT"
COPYRIGHT = "Copyright (c) 2026 the redlock authors"
NEEDS = {"libuv": "1.40", "cJSON": "1.7.14"}  # both declare MIT
TLS = {"mbedTLS": "2.28", "OpenSSL": "1.1.1"}  # one of them, where REDLOCK_TLS asks for it


def git(*words):
    done = subprocess.run(["git", "-C", SOURCE, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def digest(path, name):
    return {"algorithm": name.upper(), "checksumValue": hashlib.new(name, path.read_bytes()).hexdigest()}


def licence_of(path):
    if path.suffix == ".lua":
        return LICENCE  # its comments are kept short: redlockScripts.cmake reads them
    found = re.search(r"SPDX-License-Identifier: (\S+)", path.read_text()[:200])
    return found[1] if found else sys.exit(f"{path.relative_to(SOURCE)} names no licence")


def files():
    paths = sorted(path for folder in FOLDERS for path in (SOURCE / folder).rglob("*")
                   if path.suffix in SUFFIXES)
    for number, path in enumerate(paths):
        licence = licence_of(path)
        yield {"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path.relative_to(SOURCE)}",
               "checksums": [digest(path, "sha1"), digest(path, "sha256")], "licenseConcluded": licence,
               "licenseInfoInFiles": [licence], "copyrightText": COPYRIGHT}


def package(name, version, **more):
    return {"SPDXID": f"SPDXRef-Package-{name}", "name": name, "versionInfo": version, "licenseDeclared": LICENCE,
            "downloadLocation": "NOASSERTION"} | more


def main():
    version = re.search(r"^project\(redlock VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
    members = list(files())
    code = hashlib.sha1("".join(sorted(f["checksums"][0]["checksumValue"] for f in members)).encode()).hexdigest()
    library = package("redlock", version, filesAnalyzed=True, licenseConcluded=LICENCE,
                      licenseInfoFromFiles=sorted({f["licenseConcluded"] for f in members}),
                      packageVerificationCode={"packageVerificationCodeValue": code},
                      hasFiles=[f["SPDXID"] for f in members], copyrightText=COPYRIGHT)
    if len(sys.argv) > 1:
        archive = pathlib.Path(sys.argv[1])
        library.update(packageFileName=archive.name, checksums=[digest(archive, "sha256")])
    needs = [package(name, f">= {least}", filesAnalyzed=False, licenseConcluded="NOASSERTION",
                     copyrightText="NOASSERTION") for name, least in NEEDS.items()]
    optional = [package(name, f">= {least}", filesAnalyzed=False, licenseConcluded="NOASSERTION",
                        copyrightText="NOASSERTION", licenseDeclared="NOASSERTION") for name, least in TLS.items()]
    created = datetime.datetime.fromtimestamp(int(git("log", "-1", "--format=%ct") or 0), datetime.timezone.utc)
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"redlock-{version}",
        "documentNamespace": f"https://downloads.example.org/redlock/spdx/redlock-{version}-{code}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: spdx.py"]},
        "packages": [library, *needs, *optional], "files": members,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": library["SPDXID"]},
            *({"spdxElementId": library["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": n["SPDXID"]}
              for n in needs),
            *({"spdxElementId": o["SPDXID"], "relationshipType": "OPTIONAL_DEPENDENCY_OF",
               "relatedSpdxElement": library["SPDXID"]} for o in optional)]}, sys.stdout, indent=1)
    print()


main()
