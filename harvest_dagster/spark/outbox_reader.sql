-- bounds: the smallest id and the largest
SELECT min(id), max(id) FROM {table}

-- outbox: the messages that wait
SELECT id, create_time, kafka_topic AS topic, {key} AS key, {value} AS value
     , kafka_header_keys AS header_keys, {header_values} AS header_values, {partition} AS partition
  FROM {table} WHERE id BETWEEN %s AND %s ORDER BY id

-- parked: the messages that were parked, with the reason
SELECT id, create_time, kafka_topic AS topic, kafka_key AS key, kafka_value AS value
     , kafka_header_keys AS header_keys, kafka_header_values AS header_values
     , kafka_partition AS partition, name AS harvest, reason, parked_at, tries
  FROM harvest.parked WHERE id BETWEEN %s AND %s ORDER BY name, id
