-- A store of schema 1 in PostgreSQL, as pg_dump --inserts --no-owner writes it. It must open with every later Hone: never
-- regenerate it.
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
CREATE TABLE public.artifact (
    digest text NOT NULL,
    bytes bytea NOT NULL,
    put_unix_ms bigint NOT NULL
);
CREATE TABLE public.best (
    id bigint NOT NULL,
    workload text NOT NULL,
    target text NOT NULL,
    tolerance double precision NOT NULL,
    policy text NOT NULL,
    record bigint NOT NULL,
    latency_ns double precision NOT NULL,
    published_unix_ms bigint NOT NULL,
    replaced_unix_ms bigint
);
ALTER TABLE public.best ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.best_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.environment (
    id bigint NOT NULL,
    cpu text NOT NULL,
    isa text NOT NULL,
    cores bigint NOT NULL,
    os text NOT NULL,
    governor text NOT NULL,
    compiler text NOT NULL,
    codegen_version bigint NOT NULL,
    hone_version text NOT NULL
);
ALTER TABLE public.environment ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.environment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.hone_schema (
    version bigint NOT NULL
);
CREATE TABLE public.identity (
    id text NOT NULL
);
CREATE TABLE public.job (
    id text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL,
    request bytea NOT NULL,
    state text NOT NULL,
    error bytea NOT NULL,
    summary bytea NOT NULL,
    created_unix_ms bigint NOT NULL,
    updated_unix_ms bigint NOT NULL,
    owner text NOT NULL,
    priority text NOT NULL,
    replica text NOT NULL,
    lease_until_unix_ms bigint NOT NULL,
    fence bigint NOT NULL
);
CREATE TABLE public.job_event (
    job text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    kind text NOT NULL,
    payload bytea NOT NULL,
    CONSTRAINT job_event_number_check CHECK ((number >= 0))
);
CREATE SEQUENCE public.job_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.model (
    id bigint NOT NULL,
    name text NOT NULL,
    feature_set text NOT NULL,
    target text NOT NULL,
    scope text NOT NULL,
    version bigint NOT NULL,
    records bigint NOT NULL,
    workloads bigint NOT NULL,
    created_unix_ms bigint NOT NULL,
    metrics text NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE public.model ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.model_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.record (
    id bigint NOT NULL,
    workload text NOT NULL,
    op text NOT NULL,
    target text NOT NULL,
    tolerance double precision NOT NULL,
    policy_name text NOT NULL,
    policy_cache text NOT NULL,
    policy_threads bigint NOT NULL,
    policy_repeats bigint NOT NULL,
    policy_confidence double precision NOT NULL,
    created_unix_ms bigint NOT NULL,
    is_default boolean NOT NULL,
    quarantined boolean NOT NULL,
    quarantine_reason text NOT NULL,
    job text NOT NULL,
    trial bigint NOT NULL,
    space text NOT NULL,
    decisions bytea NOT NULL,
    outcome text NOT NULL,
    latency_ns double precision NOT NULL,
    dispersion double precision NOT NULL,
    reference_drift double precision NOT NULL,
    stopped_early boolean NOT NULL,
    max_error double precision NOT NULL,
    compile_ms double precision NOT NULL,
    link_ms double precision NOT NULL,
    code_bytes bigint NOT NULL,
    spills bigint NOT NULL,
    loads_per_fma double precision NOT NULL,
    workspace_bytes bigint NOT NULL,
    program text NOT NULL,
    artifact text NOT NULL,
    samples_ns bytea NOT NULL,
    detail bytea NOT NULL,
    frequency_mhz double precision NOT NULL,
    temperature_c double precision NOT NULL,
    load double precision NOT NULL,
    steal double precision NOT NULL,
    remeasured bigint NOT NULL,
    environment bigint NOT NULL
);
ALTER TABLE public.record ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.record_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.text (
    digest text NOT NULL,
    text text NOT NULL,
    put_unix_ms bigint NOT NULL
);
INSERT INTO public.artifact VALUES ('0000000000000000000000000000000c', '\x746865206172746966616374', 0);
INSERT INTO public.best OVERRIDING SYSTEM VALUE VALUES (1, '0000000000000000000000000000000a', 'x86_64-generic-sse-2c-01234567', 1e-05, 'confirm/flushed/2', 1, 1234.5, 1795219110696, NULL);
INSERT INTO public.environment OVERRIDING SYSTEM VALUE VALUES (1, 'a cpu', 'avx2', 2, 'an os', 'performance', 'llvm 19.1.7', 7, '0.1.0');
INSERT INTO public.hone_schema VALUES (1);
INSERT INTO public.identity VALUES ('0123456789abcdef');
INSERT INTO public.job VALUES ('job-1', 'request of job-1', '\x610072657175657374', 'pending', '\x', '\x610073756d6d617279', 1, 2, 'somebody', 'high', 'host/1/2/1', 9223372036854775807, 1);
INSERT INTO public.job_event VALUES ('job-1', 0, 'propose', '\x70');
INSERT INTO public.job_event VALUES ('job-1', 1, 'tell', '\x74');
INSERT INTO public.model OVERRIDING SYSTEM VALUE VALUES (1, 'xgboost', 'statement', 'x86_64-generic-sse-2c-01234567', 'matmul', 3, 512, 4, 1700000000000, '{"top1": 0.9}', '\x746865207472656573');
INSERT INTO public.record OVERRIDING SYSTEM VALUE VALUES (1, '0000000000000000000000000000000a', 'matmul', 'x86_64-generic-sse-2c-01234567', 1e-05, 'confirm', 'flushed', 2, 9, 0.95, 1700000000123, true, false, '', 'job-1', 42, '0000000000000000000000000000000b', '\x0001fe018002ffffffffffffffffff01feffffffffffffffff01', 'ok', 1234.5, 0.01, 1.02, true, 0.5, 12.5, 0.5, 4096, 3, 0.4, 65536, '0000000000000000000000000000000d', '0000000000000000000000000000000c', '\x000000000049934000000000004a93402e110000004a9340', '\x612064657461696c', 2500.5, -3.5, 0.25, 0.01, 2, 1);
INSERT INTO public.record OVERRIDING SYSTEM VALUE VALUES (2, '0000000000000000000000000000000a', 'matmul', 'x86_64-generic-sse-2c-01234567', 1e-05, 'screen', 'flushed', 2, 9, 0.95, 1700000000123, false, false, '', 'job-1', 42, '0000000000000000000000000000000b', '\x0001fe018002ffffffffffffffffff01feffffffffffffffff01', 'wrong_output', 1234.5, 0.01, 1.02, true, 'NaN', 12.5, 0.5, 4096, 3, 0.4, 65536, '0000000000000000000000000000000d', '0000000000000000000000000000000c', '\x000000000049934000000000004a93402e110000004a9340', '\x612064657461696c', 2500.5, -3.5, 0.25, 0.01, 2, 1);
INSERT INTO public.text VALUES ('0000000000000000000000000000000a', 'the workload', 0);
INSERT INTO public.text VALUES ('0000000000000000000000000000000b', 'the space', 0);
SELECT pg_catalog.setval('public.best_id_seq', 1, true);
SELECT pg_catalog.setval('public.environment_id_seq', 1, true);
SELECT pg_catalog.setval('public.job_number', 1, true);
SELECT pg_catalog.setval('public.model_id_seq', 1, true);
SELECT pg_catalog.setval('public.record_id_seq', 2, true);
ALTER TABLE ONLY public.artifact
    ADD CONSTRAINT artifact_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.best
    ADD CONSTRAINT best_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.environment
    ADD CONSTRAINT environment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.job_event
    ADD CONSTRAINT job_event_pkey PRIMARY KEY (job, number);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.model
    ADD CONSTRAINT model_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.record
    ADD CONSTRAINT record_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.text
    ADD CONSTRAINT text_pkey PRIMARY KEY (digest);
CREATE INDEX best_by_record ON public.best USING btree (record);
CREATE UNIQUE INDEX best_is_one ON public.best USING btree (workload, target, tolerance, policy) WHERE (replaced_unix_ms IS NULL);
CREATE INDEX best_lookup ON public.best USING btree (workload, target, tolerance, latency_ns) INCLUDE (policy, record) WHERE (replaced_unix_ms IS NULL);
CREATE INDEX environment_by_cpu ON public.environment USING btree (cpu, hone_version);
CREATE INDEX job_by_age ON public.job USING btree (created_unix_ms, id);
CREATE UNIQUE INDEX job_by_request ON public.job USING btree (request_id) WHERE (request_id <> ''::text);
CREATE INDEX job_unfinished ON public.job USING btree (lease_until_unix_ms, id) WHERE (state = ANY (ARRAY['pending'::text, 'running'::text, 'confirming'::text]));
CREATE INDEX model_by_key ON public.model USING btree (name, feature_set, target, scope, id);
CREATE INDEX record_by_job ON public.record USING btree (job, id);
CREATE INDEX record_by_op ON public.record USING btree (op, id);
CREATE INDEX record_by_target ON public.record USING btree (target, id);
CREATE INDEX record_by_time ON public.record USING btree (created_unix_ms);
CREATE INDEX record_by_workload ON public.record USING btree (workload, id);
CREATE INDEX record_failed ON public.record USING btree (outcome, id) WHERE (outcome <> 'ok'::text);
CREATE INDEX record_quarantined ON public.record USING btree (id) WHERE quarantined;
ALTER TABLE ONLY public.best
    ADD CONSTRAINT best_record_fkey FOREIGN KEY (record) REFERENCES public.record(id);
ALTER TABLE ONLY public.job_event
    ADD CONSTRAINT job_event_job_fkey FOREIGN KEY (job) REFERENCES public.job(id);
ALTER TABLE ONLY public.record
    ADD CONSTRAINT record_environment_fkey FOREIGN KEY (environment) REFERENCES public.environment(id);
