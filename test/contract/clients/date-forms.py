"""Asks for one window with its bounds in every form in which clients write dates, in both versions."""

from datetime import timedelta, timezone

import requests

from lists import BASE, KEY, MIDDLE, READS, SINCE, ids

INDIA = timezone(timedelta(hours=5, minutes=30))
FORMS = {
    "isoformat, UTC": lambda at: at.isoformat(),
    "isoformat, +05:30": lambda at: at.astimezone(INDIA).isoformat(),
    "isoformat, -08:00": lambda at: at.astimezone(timezone(timedelta(hours=-8))).isoformat(),
    "isoformat, microseconds": lambda at: at.isoformat(timespec="microseconds"),
    "strftime, %z": lambda at: at.astimezone(INDIA).strftime("%Y-%m-%dT%H:%M:%S.%f%z"),
    "Z": lambda at: at.isoformat().replace("+00:00", "Z"),
    "Z, microseconds": lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
}
LEGACY = {**FORMS, "isoformat without a zone": lambda at: at.replace(tzinfo=None).isoformat()}


def read(path, by, form):
    bounds = {f"{by}_since": form(SINCE), f"{by}_to": form(MIDDLE)}
    response = requests.get(path, params=bounds, headers=KEY, timeout=30)
    assert response.status_code == 200, f"{response.status_code} for {response.url}: {response.text[:300]}"
    return ids(response.json()["data"])


HOST = BASE.removesuffix("/api")
for name, by in READS:
    expected = read(f"{BASE}/v2/export/{name}", by, FORMS["Z"])
    assert len(expected) > 50, len(expected)
    paths = {f"{BASE}/v2/export/{name}": FORMS, f"{HOST}/data_api/v1.2/{name}": LEGACY}
    for path, forms in paths.items():
        for label, form in forms.items():
            assert read(path, by, form) == expected, f"{path} by {by}: {label}"
    print(f"requests: {len(expected)} {name} by {by} in {len(FORMS)} forms of dates")
