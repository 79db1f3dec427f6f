# Varnish in front of specmux as a shared cache. Start it with "-p http_gzip_support=off": Varnish would
# otherwise ask for gzip only and unpack it for others, under another entity tag.
# tests/stress/stress_replicas.py runs this very file, with another address.
vcl 4.1;

backend specmux {
    .host = "127.0.0.1";
    .port = "8090";
}

sub vcl_recv {
    # One variant for each content coding, and not one for each spelling of Accept-Encoding. A coding with q=0 is
    # one that the client refuses.
    if (req.http.Accept-Encoding ~ "(?i)(^|,)\s*zstd\s*(,|$|;(?!\s*q\s*=\s*0(\.0*)?\s*(,|$)))") {
        set req.http.Accept-Encoding = "zstd";
    } else if (req.http.Accept-Encoding ~ "(?i)(^|,)\s*gzip\s*(,|$|;(?!\s*q\s*=\s*0(\.0*)?\s*(,|$)))") {
        set req.http.Accept-Encoding = "gzip";
    } else {
        unset req.http.Accept-Encoding;
    }
}

sub vcl_hash {
    # The host says nothing: every name of this service has the same documents.
    hash_data(req.url);
    return (lookup);
}

# Cache-Control says what is stored, Vary keeps the forms apart; the built-in rules do the rest.
sub vcl_backend_response {
    # What is past its age is asked for again, never served meanwhile.
    set beresp.grace = 0s;
}

sub vcl_deliver {
    set resp.http.X-Cache = obj.hits;
}
