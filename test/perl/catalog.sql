-- Every object of an extension, with all that its catalog rows say, without OIDs.
WITH members AS (
	SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'vector'
), objects AS (
	SELECT classid, objid FROM members
	UNION
	SELECT 'pg_amop'::regclass, a.oid FROM pg_amop a
		JOIN members m ON m.classid = 'pg_opfamily'::regclass AND m.objid = a.amopfamily
	UNION
	SELECT 'pg_amproc'::regclass, a.oid FROM pg_amproc a
		JOIN members m ON m.classid = 'pg_opfamily'::regclass AND m.objid = a.amprocfamily
	UNION
	SELECT 'pg_type'::regclass, t.typarray FROM pg_type t
		JOIN members m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid WHERE t.typarray <> 0
), described AS (
	SELECT o.classid, o.objid, i.type || ' ' || i.identity AS object
	FROM objects o, pg_identify_object(o.classid, o.objid, 0) i
), facts AS (
	SELECT object, 'function' AS what, concat_ws(' ', l.lanname, prosrc, probin, prokind, prosecdef, proleakproof,
			proisstrict, proretset, provolatile, proparallel, procost, prorows, prosupport, prorettype::regtype,
			pronargdefaults, proargnames, proconfig, proacl) AS fact
		FROM described JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
		JOIN pg_language l ON l.oid = prolang
	UNION ALL
	SELECT object, 'aggregate', concat_ws(' ', aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggserialfn,
			aggdeserialfn, aggmtransfn, aggfinalextra, aggfinalmodify, aggsortop::regoperator, aggtranstype::regtype,
			aggtransspace, coalesce(agginitval, 'NULL'))
		FROM described JOIN pg_aggregate a ON classid = 'pg_proc'::regclass AND objid = a.aggfnoid
	UNION ALL
	SELECT object, 'type', concat_ws(' ', typlen, typbyval, typtype, typcategory, typispreferred, typisdefined,
			typdelim, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze,
			typalign, typstorage, typelem::regtype, typarray::regtype, typcollation)
		FROM described JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid
	UNION ALL
	SELECT object, 'operator', concat_ws(' ', oprkind, oprcanmerge, oprcanhash, oprresult::regtype, oprcom::regoperator,
			oprnegate::regoperator, oprcode, oprrest, oprjoin)
		FROM described JOIN pg_operator p ON classid = 'pg_operator'::regclass AND objid = p.oid
	UNION ALL
	SELECT object, 'cast', concat_ws(' ', castfunc::regprocedure, castcontext, castmethod)
		FROM described JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid
	UNION ALL
	SELECT object, 'access method', concat_ws(' ', amhandler, amtype)
		FROM described JOIN pg_am a ON classid = 'pg_am'::regclass AND objid = a.oid
	UNION ALL
	SELECT object, 'operator class', concat_ws(' ', opcintype::regtype, opcdefault, opckeytype)
		FROM described JOIN pg_opclass c ON classid = 'pg_opclass'::regclass AND objid = c.oid
	UNION ALL
	SELECT object, 'operator of a family', concat_ws(' ', amopstrategy, amoppurpose, amopopr::regoperator, f.opfname)
		FROM described JOIN pg_amop a ON classid = 'pg_amop'::regclass AND objid = a.oid
		LEFT JOIN pg_opfamily f ON f.oid = amopsortfamily
	UNION ALL
	SELECT object, 'function of a family', concat_ws(' ', amprocnum, amproc::regprocedure)
		FROM described JOIN pg_amproc a ON classid = 'pg_amproc'::regclass AND objid = a.oid
	UNION ALL
	SELECT object, 'relation', concat_ws(' ', relkind, relacl, pg_get_viewdef(c.oid))
		FROM described JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
	UNION ALL
	SELECT object, 'comment', description
		FROM described JOIN pg_description c ON c.classoid = classid AND c.objoid = objid
	UNION ALL
	SELECT object, 'depends ' || deptype::text, r.type || ' ' || r.identity
		FROM described JOIN pg_depend d USING (classid, objid), pg_identify_object(refclassid, refobjid, refobjsubid) r
)
SELECT object || ' | ' || what || ' | ' || fact FROM facts ORDER BY 1;
