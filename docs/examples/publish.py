import json
import os
from datetime import datetime, timezone

from confluent_kafka import Producer

now = datetime.now(timezone.utc).isoformat()
event = {
    "specversion": "1.0",
    "id": "python-1",
    "source": "/try",
    "type": "conversation.exported",
    "time": now,
    "clientid": "demo-client",
    "data": {"_id": "by-python", "date_created": now},
}


def delivered(error, message):
    if error is not None:
        raise SystemExit(f"not published: {error}")


producer = Producer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "acks": "all"})
producer.produce(
    "conversations",
    key=f"{event['clientid']}:{event['data']['_id']}",
    value=json.dumps(event),
    headers={"content-type": "application/cloudevents+json"},
    on_delivery=delivered,
)
if producer.flush(10) > 0:
    raise SystemExit("not published within 10 s")
