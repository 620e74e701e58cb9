-- Sessions in the tables of OpenCode: one with a subagent, and three that no call names, two of which name
-- each other as parents.
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, title text, time_created integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text, message_id text, session_id text, data text);
INSERT INTO session VALUES
  ('ses_2', 'p', 'ses_1', 'child', 2),
  ('ses_1', 'p', NULL, 'A fix', 1),
  ('ses_3', 'p', 'ses_1', 'ses_3', 9),
  ('ses_4', 'p', 'ses_5', 'ses_4', 9),
  ('ses_5', 'p', 'ses_4', 'ses_5', 9);
INSERT INTO message VALUES
  ('msg_1', 'ses_1', 1795293988000, 1795293988000, '{"sessionID":"ses_1","role":"user","time":{"created":1795293988000}}'),
  ('msg_2', 'ses_1', 1795293989000, 1795293989000, '{"sessionID":"ses_1","role":"assistant","modelID":"m","time":{"created":1795293989000}}'),
  ('msg_3', 'ses_2', 1795293990000, 1795293990000, '{"sessionID":"ses_2","role":"user","time":{"created":1795293990000}}'),
  ('msg_4', 'ses_2', 1795293991000, 1795293991000, '{"sessionID":"ses_2","role":"assistant","modelID":"n","time":{"created":1795293991000}}'),
  ('ses_3', 'ses_3', 9, 9, '{"role": "user"}'),
  ('ses_4', 'ses_4', 9, 9, '{"role": "user"}'),
  ('ses_5', 'ses_5', 9, 9, '{"role": "user"}');
INSERT INTO part VALUES
  ('prt_1', 'msg_1', 'ses_1', '{"id":"prt_1","type":"text","text":"fix it"}'),
  ('prt_2', 'msg_1', 'ses_1', '{"id":"prt_2","type":"text","text":"reminder","synthetic":true}'),
  ('prt_3', 'msg_1', 'ses_1', '{"id":"prt_3","type":"text","text":"hidden","ignored":true}'),
  ('prt_4', 'msg_1', 'ses_1', '{"id":"prt_4","type":"file","mime":"image/png","url":"data:image/png;base64,QUJD","filename":"a.png"}'),
  ('prt_5', 'msg_1', 'ses_1', '{"id":"prt_5","type":"file","mime":"text/plain","url":"file:///a.txt"}'),
  ('prt_1', 'msg_2', 'ses_1', '{"id":"prt_1","type":"step-start"}'),
  ('prt_2', 'msg_2', 'ses_1', '{"id":"prt_2","type":"reasoning","text":"hm","metadata":{"anthropic":{"signature":"S"}}}'),
  ('prt_3', 'msg_2', 'ses_1', '{"id":"prt_3","type":"tool","tool":"task","callID":"c1","state":{"status":"completed","input":{"p":1},"output":"done","metadata":{"sessionId":"ses_2"},"time":{"start":1,"end":1795293995000,"compacted":7}}}'),
  ('prt_4', 'msg_2', 'ses_1', '{"id":"prt_4","type":"tool","tool":"read","callID":"c2","state":{"status":"error","input":{},"error":"no file"}}'),
  ('prt_5', 'msg_2', 'ses_1', '{"id":"prt_5","type":"step-finish","tokens":{"input":100,"output":5,"reasoning":2.0,"cache":{"read":10,"write":3}}}'),
  ('prt_6', 'msg_2', 'ses_1', '{"id":"prt_6","type":"step-start"}'),
  ('prt_7', 'msg_2', 'ses_1', '{"id":"prt_7","type":"text","text":"ready"}'),
  ('prt_8', 'msg_2', 'ses_1', '{"id":"prt_8","type":"step-finish","tokens":{"input":200,"output":5,"reasoning":2.0,"cache":{"read":10,"write":3}}}'),
  ('prt_1', 'msg_3', 'ses_2', '{"id":"prt_1","type":"text","text":"look"}'),
  ('prt_1', 'msg_4', 'ses_2', '{"id":"prt_1","type":"text","text":"seen"}'),
  ('1', 'ses_3', 'ses_3', '{"type":"text","text":"ses_3"}'),
  ('1', 'ses_4', 'ses_4', '{"type":"text","text":"ses_4"}'),
  ('1', 'ses_5', 'ses_5', '{"type":"text","text":"ses_5"}');
